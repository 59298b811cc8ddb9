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

// formatVersion changes with the fields or the analysis: an index of another
// version is made anew.
const formatVersion = 4

// Caps of one batch: the memory that indexing takes.
const (
	batchDocs    = 256
	batchBytes   = 8 << 20       // of text
	batchChanges = 8 * batchDocs // most are of Keys that were found and are not crawled yet

	// From a change to its being searchable, about: gatherFor, and up to gatherMost where documents come so fast that
	// a longer wait makes larger segments, which are cheaper to write and to merge.
	gatherFor  = time.Second
	gatherMost = 4 * time.Second
	gatherFrom = 8 // documents a second

	trimEvery = 4096 // changes between two trims of the store's log

	expireEvery = time.Minute // looks for slices that have stayed long enough
	sumEvery    = 10 * time.Second
)

// mergePlan is how scorch merges segments (mergeplan.MergePlanOptions; it is not changed). A floor of scorch's 2,000
// documents takes all smaller segments for equal: an index of some thousand pages was written anew with every batch.
// What is merged is MaxMerge documents at most, so that the disk need not have room for the whole index twice.
var mergePlan = map[string]any{"FloorSegmentSize": batchDocs / 2, "MaxSegmentSize": MaxMerge}

// MaxMerge is how many documents a segment has at most that is made of others. A merge writes it before the others are
// deleted.
const MaxMerge = 100_000

// ErrClosed is the answer of an Index after Close.
var ErrClosed = errors.New("index: closed")

// Options of Open.
type Options struct {
	Workers int          // goroutines that analyse text, default half as many as there are processors, 2 at most
	Logger  *slog.Logger // default: discard
	// Slices are those that Keep is called with first. Default: all hash slices of
	// the store's charter.
	Slices []partition.Slice
	// Linger is how long a slice stays that is not kept any more, or was only
	// waited for (Await). Default 10 min; less than 0: not at all.
	Linger time.Duration
	// Fingerprint says by what a record meets its copies (Meet); no buckets: it has none. It
	// is a function of the record alone, and PrintVersion changes with it: an index of
	// another version is made anew. Default: nobody meets.
	Fingerprint        func(*store.Record) Fingerprint
	FingerprintVersion int
}

// Index is the full text of one store. Safe for concurrent use.
type Index struct {
	dir          string
	st           *db.Store
	log          *slog.Logger
	words        words.Analyzers
	queue        *index.AnalysisQueue
	linger       time.Duration
	fingerprint  func(*store.Record) Fingerprint
	fingerprints int // Options.PrintVersion
	wishes       *wishes

	noted sums.State // by Run, and by Close after it

	step           sync.Mutex // one batch at a time; guards what follows
	mark           mark
	marked         bool              // one was written
	saved, trimmed uint64            // of the changes: those up to here need not be followed again, are gone
	packed         []byte            // have as it was written last; nil when it has changed
	todo, gone     []partition.Slice // to be read, to be evicted

	mu     sync.RWMutex               // guards what follows; held for reading by searches
	scorch index.Index                // nil when closed
	docs   map[partition.Slice]uint64 // of each slice that may have one
	// searched: each of their records up to mark.Seq is in; changes with step held too
	have     map[partition.Slice]bool
	progress chan struct{} // closed when have grew
	done     chan struct{} // closed by Close
	runs     sync.WaitGroup

	// mark.Seq and have for those who ask how far the index is: neither a batch nor a
	// search holds them up. What is in have is not changed any more.
	seq      atomic.Uint64
	wrote    atomic.Int64 // documents, since Open
	searched atomic.Pointer[map[partition.Slice]bool]
}

// mark is how far the index has come. It is written in each batch.
type mark struct {
	V           int             `json:"v"`
	Fingerprint int             `json:"print,omitempty"` // Options.PrintVersion
	Store       string          `json:"store"`           // store.ID
	Seq         uint64          `json:"seq"`             // changes up to here are in
	In          partition.Slice `json:"in,omitempty"`    // the slice that is being read, 0 = none
	From        partition.Key   `json:"from"`            // its records up to here are in
	Posts       bool            `json:"posts,omitempty"` // all of its records are in, and
	Post        string          `json:"post,omitempty"`  // its posts up to this one of From
	Have        []byte          `json:"have"`            // the slices that are in whole, by pack
}

const markKey = "mark"

// Open opens the index of st in dir ("" = in memory, for tests), or makes it
// when there is none or it is not to be used; then Run or Flush fills it from the records. The index must
// be closed before st is.
func Open(dir string, st *db.Store, o Options) (*Index, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Workers <= 0 {
		o.Workers = min(max(runtime.GOMAXPROCS(0)/2, 1), 2) // the crawl goes first
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

// load opens what is there, and says why it is of no use.
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

// start is the mark of an empty index: changes are followed from now on.
func (ix *Index) start() mark {
	return mark{V: formatVersion, Fingerprint: ix.fingerprints, Store: ix.st.ID(), Seq: ix.st.LastSeq()}
}

// open opens or makes the scorch index. A panic of its decoders on a damaged
// file is an error like another.
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
		_ = s.Close() // it is of no use either way
		return err
	}
	ix.scorch, ix.docs = s, make(map[partition.Slice]uint64)
	ix.setHave(map[partition.Slice]bool{})
	return nil
}

// reset removes the index and makes it anew, empty. Callers hold step, and
// none searches: they hold mu, or are Open.
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

// Close waits for Run, Flush and searches under way.
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

// noteSum has the next Open know damage in the list of segments.
func (ix *Index) noteSum() {
	if ix.dir == "" {
		return
	}
	noted, err := sums.Note(ix.dir, ix.noted)
	if err != nil { // without it the next Open knows less
		ix.log.Warn("index: the sum of its list of segments cannot be noted", "dir", ix.dir, "error", err)
	}
	ix.noted = noted
}

// enter counts a Run or Flush; leave with runs.Done.
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

// Run keeps the index up with the store until ctx ends, Close (nil) or a fault.
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
			continue // somebody may be waiting
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
		// What comes within a moment is written as one: each write makes a segment
		// that has to be merged with the others later, which costs more than all the
		// rest. That holds for the slices of a swarm in motion, too, which come one
		// after the other; who asks for one of them (Await) does not wait for it.
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

// gatherAt is how long news are gathered, after so many documents were written in so long.
func gatherAt(docs int64, took time.Duration) time.Duration {
	rate := float64(docs) / max(took, gatherFor).Seconds()
	if rate < gatherFrom {
		return gatherFor
	}
	return min(max(time.Duration(batchDocs/2/rate*float64(time.Second)), gatherFor), gatherMost)
}

// Flush indexes all that was durable when it was called, of all slices that are
// wanted.
func (ix *Index) Flush(ctx context.Context) error {
	if err := ix.enter(); err != nil {
		return err
	}
	defer ix.runs.Done()
	return ix.flush(ctx, false)
}

// flush writes batches until all is in that was durable when it began. Where the crawl goes first, it rests between two
// of them while more comes.
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

// rest leaves the processors to the crawl for twice as long as a batch took, 2 s at most, where the index is behind
// because so much comes. Nobody waits for that; who waits for a slice is not held up.
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
	case <-ix.wishes.kick: // the next batch looks what it is
	case <-t.C:
	}
}

func (ix *Index) reached(target uint64) bool {
	ix.step.Lock()
	defer ix.step.Unlock()
	return ix.mark.Seq >= target && !ix.unsettled()
}

// Seq is the watermark: of the slices that are in the index whole, changes up to
// it are searched. It does not wait for a batch that is being written.
func (ix *Index) Seq() uint64 { return ix.seq.Load() }

// setHave makes have what is searched; nobody changes it from then on. mu is held, or
// this is Open.
func (ix *Index) setHave(have map[partition.Slice]bool) {
	ix.have = have
	ix.searched.Store(&have)
}
