package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/index/sums"
	"github.com/echo-node/echo-node/store/index/words"
)

// formatVersion changes with the fields or the analysis. An index of another version is rebuilt.
const formatVersion = 4

// Limits of one batch, and so of the memory that indexing uses.
const (
	batchDocs    = 256
	batchBytes   = 8 << 20       // of text
	batchChanges = 8 * batchDocs // most are of Keys that were found but not crawled yet

	// A change is searchable after about gatherFor. The delay is up to gatherMost when many
	// documents arrive: larger segments are cheaper to write and to merge.
	gatherFor  = time.Second
	gatherMost = 4 * time.Second
	gatherFrom = 8 // documents per second

	trimEvery = 4096 // changes between two trims of the store's log

	expireEvery = time.Minute // how often it looks for slices whose time is over
	sumEvery    = 10 * time.Second
)

// mergePlan configures how scorch merges segments (mergeplan.MergePlanOptions; nothing changes it).
// With scorch's own floor of 2,000 documents, all smaller segments count as equal. Then each batch
// rewrote an index of a few thousand pages completely. Merges contain at most MaxMerge documents,
// so the disk does not need room for the whole index twice.
var mergePlan = map[string]any{"FloorSegmentSize": batchDocs / 2, "MaxSegmentSize": MaxMerge}

// MaxMerge is the maximum number of documents in a merged segment. A merge writes it before it
// deletes the old segments.
const MaxMerge = 100_000

// ErrClosed is returned by the methods of an Index after Close.
var ErrClosed = errors.New("index: closed")

// Options configure Open.
type Options struct {
	Workers int          // goroutines that analyse text; default half of the processors, at most 2
	Logger  *slog.Logger // default: discard
	// Slices are the first argument of Keep. Default: all hash slices of the store's charter.
	Slices []partition.Slice
	// Linger is how long a slice stays after Keep drops it, or after the last Await for it. Default 10
	// min; a negative value means that it does not stay.
	Linger time.Duration
	// Fingerprint returns the buckets in which a record meets its copies (Meet); a record without
	// buckets has no copies. It must depend on the record alone, and FingerprintVersion must change
	// with it: an index of another version is rebuilt. Default: no copies are found.
	Fingerprint        func(*store.Record) Fingerprint
	FingerprintVersion int
}

// Index is the full-text index of one store. It is safe for concurrent use.
type Index struct {
	dir          string
	st           *db.Store
	log          *slog.Logger
	words        words.Analyzers
	queue        *index.AnalysisQueue
	linger       time.Duration
	fingerprint  func(*store.Record) Fingerprint
	fingerprints int // Options.FingerprintVersion
	wishes       *wishes

	noted sums.State // set by Run, and by Close after Run ended

	step           sync.Mutex // one batch at a time; guards the fields below
	mark           mark
	marked         bool              // a mark was written
	saved, trimmed uint64            // up to saved: need not be followed again
	packed         []byte            // have, as last written; nil when it has changed
	todo, gone     []partition.Slice // slices to read, and to remove

	mu     sync.RWMutex               // guards the fields below; searches hold it for reading
	scorch index.Index                // nil when closed
	docs   map[partition.Slice]uint64 // count of each slice that may have documents
	// The searched slices: all their records up to mark.Seq are in. Writers also hold step.
	have     map[partition.Slice]bool
	progress chan struct{} // closed when have grows
	done     chan struct{} // closed by Close
	runs     sync.WaitGroup

	// seq and searched are copies of mark.Seq and have, for callers that ask how far the index is.
	// Neither a batch nor a search delays these callers. The map in searched never changes.
	seq      atomic.Uint64
	wrote    atomic.Int64 // documents written since Open
	searched atomic.Pointer[map[partition.Slice]bool]
}

// mark is the progress of the index. Each batch writes it.
type mark struct {
	V           int             `json:"v"`
	Fingerprint int             `json:"print,omitempty"` // Options.FingerprintVersion
	Store       string          `json:"store"`           // store.ID
	Seq         uint64          `json:"seq"`             // changes up to here are indexed
	In          partition.Slice `json:"in,omitempty"`    // the slice being scanned, 0 = none
	From        partition.Key   `json:"from"`            // its records up to here are indexed
	Posts       bool            `json:"posts,omitempty"` // all of its records are indexed, and
	Post        string          `json:"post,omitempty"`  // its posts up to this one of From
	Have        []byte          `json:"have"`            // the slices indexed completely, by pack
}

const markKey = "mark"

// Open opens the index of st in dir ("" = in memory, for tests). It creates the index when there is
// none, and rebuilds one that is not usable. Run or Flush then fills it from the records. The index
// must be closed before st.
func Open(dir string, st *db.Store, o Options) (*Index, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Workers <= 0 {
		o.Workers = min(max(runtime.GOMAXPROCS(0)/2, 1), 2) // the crawl has priority
	}
	if o.Slices == nil {
		o.Slices = st.Charter().Slices()
	}
	if o.Linger == 0 {
		o.Linger = 10 * time.Minute
	}
	ix := &Index{dir: dir, st: st, log: o.Logger, words: words.New(), queue: index.NewAnalysisQueue(o.Workers),
		linger:      o.Linger,
		fingerprint: o.Fingerprint, fingerprints: o.FingerprintVersion,
		wishes: newWishes(o.Slices), progress: make(chan struct{}), done: make(chan struct{})}
	reason := ix.load()
	if reason != nil {
		if err := ix.reset(reason); err != nil {
			ix.queue.Close()
			return nil, err
		}
	}
	return ix, nil
}

// load opens the existing index, or returns why it is not usable.
func (ix *Index) load() error {
	_, err := os.Stat(ix.dir)
	isNew := errors.Is(err, os.ErrNotExist)
	if ix.dir != "" {
		if err := sums.Check(ix.dir); err != nil {
			return err
		}
	}
	if err := ix.open(); err != nil {
		return err
	}
	r, err := ix.scorch.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	v, err := r.GetInternal([]byte(markKey))
	if err != nil {
		return err
	}
	if len(v) == 0 && isNew {
		ix.mark = ix.start()
		ix.seq.Store(ix.mark.Seq)
		return nil
	}
	if err := json.Unmarshal(v, &ix.mark); err != nil {
		return fmt.Errorf("no watermark: %w", err)
	}
	if ix.mark.Fingerprint != ix.fingerprints {
		return fmt.Errorf("its copies are told by version %d, this is version %d", ix.mark.Fingerprint, ix.fingerprints)
	}
	if ix.mark.V != formatVersion || ix.mark.Store != ix.st.ID() || ix.mark.Seq > ix.st.LastSeq() {
		return fmt.Errorf("of version %d of store %s at %d; this is version %d of store %s at %d",
			ix.mark.V, ix.mark.Store, ix.mark.Seq, formatVersion, ix.st.ID(), ix.st.LastSeq())
	}
	have, err := unpack(ix.mark.Have)
	if err != nil {
		return err
	}
	ix.setHave(have)
	ix.marked, ix.packed, ix.saved = true, ix.mark.Have, ix.mark.Seq
	ix.seq.Store(ix.mark.Seq)
	ix.docs, err = countSlices(r)
	return err
}

// start returns the mark of an empty index: changes are followed from now on.
func (ix *Index) start() mark {
	return mark{V: formatVersion, Fingerprint: ix.fingerprints, Store: ix.st.ID(), Seq: ix.st.LastSeq()}
}

// open opens or creates the scorch index. A panic of its decoders on a damaged file is returned as
// an error.
func (ix *Index) open() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("damaged: %v", r)
		}
	}()
	s, err := scorch.NewScorch(scorch.Name, map[string]any{"path": ix.dir, "bolt_timeout": "2s",
		"scorchMergePlanOptions": mergePlan}, ix.queue)
	if err != nil {
		return err
	}
	if err := s.Open(); err != nil {
		_ = s.Close() // it is not usable in any case
		return err
	}
	ix.scorch, ix.docs = s, make(map[partition.Slice]uint64)
	ix.setHave(map[partition.Slice]bool{})
	return nil
}

// reset removes the index and creates an empty one. The caller holds step. No search runs: the
// caller holds mu, or is Open.
func (ix *Index) reset(reason error) error {
	ix.log.Warn("index: built again from the store", "dir", ix.dir, "reason", reason)
	if ix.scorch != nil {
		if err := ix.scorch.Close(); err != nil {
			ix.log.Warn("index: close", "dir", ix.dir, "error", err)
		}
		ix.scorch = nil
	}
	if err := os.RemoveAll(ix.dir); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if err := ix.open(); err != nil {
		return fmt.Errorf("index: %s: %w", ix.dir, err)
	}
	ix.mark, ix.marked, ix.saved, ix.packed = ix.start(), false, 0, nil
	ix.seq.Store(ix.mark.Seq)
	ix.wishes.again()
	return nil
}

// Close waits until Run, Flush and running searches end, and closes the index.
func (ix *Index) Close() error {
	ix.mu.Lock()
	select {
	case <-ix.done:
		ix.mu.Unlock()
		return nil
	default:
		close(ix.done)
	}
	ix.mu.Unlock()
	ix.runs.Wait()
	ix.step.Lock()
	defer ix.step.Unlock()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	s := ix.scorch
	ix.scorch = nil
	err := s.Close()
	ix.queue.Close()
	if err != nil {
		return fmt.Errorf("index: close: %w", err)
	}
	ix.noteSum()
	return nil
}

// noteSum records the sum of the list of segments, so that the next Open can detect damage.
func (ix *Index) noteSum() {
	if ix.dir == "" {
		return
	}
	noted, err := sums.Note(ix.dir, ix.noted)
	if err != nil { // without it the next Open detects less
		ix.log.Warn("index: the sum of its list of segments cannot be noted", "dir", ix.dir, "error", err)
	}
	ix.noted = noted
}

// enter registers a Run or Flush; the caller ends it with runs.Done.
func (ix *Index) enter() error {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	select {
	case <-ix.done:
		return ErrClosed
	default:
		ix.runs.Add(1)
		return nil
	}
}

// Run keeps the index up to date with the store. It ends with ctx, with Close (nil) or with an
// error.
func (ix *Index) Run(ctx context.Context) error {
	if err := ix.enter(); err != nil {
		return err
	}
	defer ix.runs.Done()
	expire := time.NewTicker(expireEvery)
	defer expire.Stop()
	sums := time.NewTicker(sumEvery)
	defer sums.Stop()
	wrote, at := ix.wrote.Load(), time.Now()
	for {
		news := ix.st.Changed()
		if err := ix.flush(ctx, true); err != nil {
			if errors.Is(err, ErrClosed) {
				return nil
			}
			return err
		}
		var wait time.Duration
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ix.done:
			return nil
		case <-ix.wishes.kick:
			continue // a caller may be waiting
		case <-expire.C:
			ix.wishes.again()
			continue
		case <-sums.C:
			ix.noteSum()
			continue
		case <-ix.wishes.wake:
			wait = gatherFor
		case <-news:
			wait = gatherAt(ix.wrote.Load()-wrote, time.Since(at))
		}
		// Changes within this time are written together. Each write creates a segment that must be
		// merged later, and merging costs more than everything else. This also holds for slices
		// that arrive one after the other while a swarm moves them. A caller that needs one of them
		// (Await) does not wait for this.
		gather := time.NewTimer(wait)
		wrote, at = ix.wrote.Load(), time.Now()
		select {
		case <-ctx.Done():
			gather.Stop()
			return ctx.Err()
		case <-ix.done:
			gather.Stop()
			return nil
		case <-ix.wishes.kick:
			gather.Stop()
		case <-gather.C:
		}
	}
}

// gatherAt returns how long to gather changes, when docs documents were written within took.
func gatherAt(docs int64, took time.Duration) time.Duration {
	rate := float64(docs) / max(took, gatherFor).Seconds()
	if rate < gatherFrom {
		return gatherFor
	}
	return min(max(time.Duration(batchDocs/2/rate*float64(time.Second)), gatherFor), gatherMost)
}

// Flush indexes everything in all wanted slices that was durable when it was called.
func (ix *Index) Flush(ctx context.Context) error {
	if err := ix.enter(); err != nil {
		return err
	}
	defer ix.runs.Done()
	return ix.flush(ctx, false)
}

// flush writes batches until everything is indexed that was durable when it began. With crawlFirst,
// it rests between two batches while more changes arrive.
func (ix *Index) flush(ctx context.Context, crawlFirst bool) error {
	for target := ix.st.LastSeq(); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		select {
		case <-ix.done:
			return ErrClosed
		default:
		}
		begun := time.Now()
		more, err := ix.advance()
		if err != nil {
			return fmt.Errorf("index: %w", err)
		}
		if !more || ix.reached(target) {
			return nil
		}
		if crawlFirst && ix.st.LastSeq() > target {
			ix.rest(ctx, time.Since(begun))
		}
	}
}

// rest leaves the processors to the crawl for twice the duration of a batch, at most 2 s, when the
// index is behind because much arrives. It does not rest while slices must be read or removed.
func (ix *Index) rest(ctx context.Context, took time.Duration) {
	ix.step.Lock()
	unsettled := ix.unsettled()
	ix.step.Unlock()
	if unsettled {
		return
	}
	t := time.NewTimer(min(2*took, 2*gatherFor))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-ix.done:
	case <-ix.wishes.kick: // the next batch looks at what it is
	case <-t.C:
	}
}

func (ix *Index) reached(target uint64) bool {
	ix.step.Lock()
	defer ix.step.Unlock()
	return ix.mark.Seq >= target && !ix.unsettled()
}

// Seq returns the watermark: changes up to it are searched, in the slices that are indexed
// completely. It does not wait for a batch that is being written.
func (ix *Index) Seq() uint64 { return ix.seq.Load() }

// setHave sets the searched slices to have. Nothing changes the map after that. The caller holds
// mu, or is Open.
func (ix *Index) setHave(have map[partition.Slice]bool) {
	ix.have = have
	ix.searched.Store(&have)
}
