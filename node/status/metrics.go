package status

import (
	"time"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/node/api"
)

// Metrics returns this peer's samples for Prometheus. docs/operate.md lists them.
func (b *Board) Metrics() []api.Metric {
	s, crawl := b.Status(), b.Crawler.Stats()
	out := []api.Metric{
		api.Gauge("echo_keys", "Keys known to this peer.", float64(s.Keys)),
		api.Gauge("echo_keys_pending", "Keys admitted and never fetched.", float64(s.Pending)),
		api.Gauge("echo_records", "Records held.", float64(s.Records)),
		api.Gauge("echo_fetching", "Fetches under way.", float64(s.Fetching)),
		api.Gauge("echo_outbox", "Links without a final answer.", float64(s.Outbox)),
		api.Gauge("echo_slices", "Slices this peer acts in.", float64(s.Slices)),
		api.Gauge("echo_slices_awaited", "Slices owned that no majority of their replicas leases to this peer.",
			float64(s.SlicesAwaited)),
		api.Gauge("echo_slices_kept", "Slices of which a copy is kept here.", float64(s.SlicesKept)),
		api.Gauge("echo_slices_moving", "Slices owned that others should keep.", float64(s.SlicesMoving)),
		api.Gauge("echo_slices_replicating", "Slices owned of which a live replica's copy is behind.",
			float64(s.SlicesReplicating)),
		api.Gauge("echo_newcomers_waiting", "Live members, never seen before, that do not count for ownership yet.",
			float64(b.Placement.NewcomersWaiting())),
		api.Gauge("echo_peers", "Live members of the swarm.", float64(s.Peers)),
		api.Gauge("echo_index_lag", "Changes, and owned slices, not yet searchable.", float64(s.IndexLag)),
		api.Gauge("echo_fingerprints", "Records and posts in this peer's index that can meet copies.", float64(s.Fingerprints)),
		api.Gauge("echo_media_files", "Files of accounts held.", float64(s.Media)),
		api.Gauge("echo_media_bytes", "Size of the files of accounts held, each URL counted.", float64(s.MediaBytes)),
		api.Gauge("echo_disk_bytes", "What the data directory takes on the disk.", float64(s.DiskBytes)),
		api.Counter("echo_fetched_total", "Fetches that ended in a record.", s.Fetched),
		api.Counter("echo_requests_total", "HTTP requests made by the crawler since the start.", s.Requests),
		api.Counter("echo_fetch_failures_total", "Fetches that failed since the start.", s.Failed),
		api.Counter("echo_domain_deferred_total",
			"Requests that waited for the pace of their registrable domain since the start.", crawl.Deferred),
		api.Counter("echo_stuck_tasks_total", "Fetches that made no progress and were cancelled since the start.",
			crawl.Stuck),
		api.Gauge("echo_abandoned_tasks", "Fetches that were cancelled and do not end.", float64(crawl.Abandoned)),
		api.Counter("echo_links_out_total", "Links handed out with a final answer since the start.", s.LinksOut),
		api.Counter("echo_links_in_total", "Links of other peers finally answered since the start.", s.LinksIn),
		api.Counter("echo_rows_refused_total", "Messages of rows refused since the start.",
			b.Replicated.RefusedRows.Load()),
		api.Counter("echo_rows_left_total",
			"Rows left that a member brought which does not keep their slice, since the start.",
			b.Replicated.RowsLeft.Load()),
		api.Counter("echo_rows_ahead_total",
			"Rows left as they say that they were fetched in the future, since the start: a clock is wrong.",
			b.Clock.rows.Load()),
		api.Gauge("echo_trash_bytes", "Size of the dropped copies of slices in the trash.",
			float64(s.Trash.Bytes)),
		api.Gauge("echo_trash_slices", "Dropped copies of slices in the trash.", float64(s.Trash.Slices)),
		api.Counter("echo_trash_full_total",
			"Copies of slices dropped without a copy in the trash since the start: they are too large for it, or it is off.", b.Replicated.TrashFull.Load()),
		api.Counter("echo_repaired_buckets_total", "Buckets of slices in which two copies differed since the start.",
			b.Replicated.Repaired.Load()),
		api.Counter("echo_agreement_strangers_total",
			"Replica sets that hosts without membership sent since the start. They are ignored.",
			b.Replicated.ReportsIgnored.Load()),
		api.Counter("echo_agreement_hearsay_total",
			"Replica sets taken since the start from the peers that they name, as the replicas before are gone.",
			b.Replicated.ReportsConfirmed.Load()),
		api.Counter("echo_agreement_aside_total",
			"Stored replica sets of slices that were impossible and are put aside, at this start.",
			b.Replicated.ReplicaSetsAside.Load()),
		api.Counter("echo_part_restarts_total", "Parts of this peer that panicked and were begun again since the start.",
			b.Counts.Restarts.Load()),
		api.Counter("echo_copies_cut_total",
			"Questions for the copies of a text that met a limit since the start: there may be more.",
			b.Search.CopiesCut()),
		api.Counter("echo_links_refused_total", "Links refused at this peer's gate since the start.",
			b.Links.Refused.Load()),
	}
	if b.Backups {
		out = append(out, api.Gauge("echo_backup_timestamp_seconds",
			"When the newest backup was made, Unix time; 0 = there is none.", float64(b.Counts.LastBackup.Load())),
			api.Counter("echo_backup_failures_total", "Scheduled backups that failed since the start.",
				b.Counts.FailedBackups.Load()))
	}
	out = append(out, judgeMetrics(s.Quarantined, crawl)...)
	out = append(append(out, b.Gate.Metrics()...), b.overlayMetrics()...)
	out = append(out, b.Addresses.Metrics(time.Now())...)
	out = append(out, budgetMetrics(s.Budgets, time.Now())...)
	out = append(out, streamMetrics(s.Streams)...)
	out = append(out, roundMetrics(s.Rounds)...)
	return append(out, labelledMetrics(s)...)
}

// overlayMetrics returns the counts of what the overlay refused, by reason.
func (b *Board) overlayMetrics() (out []api.Metric) {
	by := func(name, help, label string, counts map[string]uint64) {
		out = append(out, api.Counters(name, help, label, counts)...)
	}
	s := b.Overlay.Stats()
	refused := map[string]uint64{"busy": s.Busy, "malformed": s.Malformed, "cut": s.Cut, "replayed": s.Replayed,
		"swim": s.Member.Refused, "bad-descriptor": s.Member.BadDescriptors,
		"stale-descriptor": s.Member.StaleDescriptors}
	for k, v := range s.RejectedDescriptors {
		refused["record-"+k] = v
	}
	by("echo_overlay_refused_total", "What other peers sent that was refused, by reason.", "reason", refused)
	by("echo_overlay_no_place_total", "Streams and connections of other peers without a place, by pool and limit.",
		"reason", s.NoPlace)
	by("echo_overlay_not_dialled_total", "Announced addresses that were not dialled, by reason.", "reason",
		s.NotDialled)
	by("echo_death_claims_total",
		"Claims that a live member is dead, by the peer that sent them; honest peers pass some on.", "peer",
		s.Member.DeathClaims)
	by("echo_not_admitted_total", "Peers that a private swarm did not let in, by reason.", "reason", s.HandshakeFailed)
	return out
}

// labelledMetrics returns samples with a label: a reason, outcome, verdict, language, hint or
// limit.
func labelledMetrics(s api.Status) (out []api.Metric) {
	out = append(api.Counters("echo_stops_total", "Keys that ended without a record, by reason.", "reason", s.Stops),
		api.Gauge("echo_dead_share", "Share of the records whose page was gone or did not answer at its last visit.",
			s.Dead))
	out = append(out, api.Counters("echo_revisits_total",
		"Visits of what had been fetched before, since the start, by what they found.", "outcome", s.Revisits)...)
	for verdict, k := range s.Verdicts {
		out = append(out, api.Metric{Name: "echo_verdicts",
			Help: "Accounts of the slices owned here by whether they belong to the community.", Kind: "gauge",
			Value: float64(k), Labels: map[string]string{"verdict": verdict}})
	}
	for _, l := range s.TopLanguages(api.ShownLanguages) {
		out = append(out, api.Metric{Name: "echo_languages",
			Help: "Records and posts in this peer's index by language; the most frequent ones.", Kind: "gauge",
			Value: float64(s.Languages[l]), Labels: map[string]string{"lang": l}})
	}
	out = append(out, api.Counters("echo_hints_total", "Hints of sitemaps and feeds that a page changed after its fetch, "+
		"since the start: received, followed, and right or wrong by the next visit.", "what", s.Hints)...)
	for _, l := range s.Limits {
		out = append(out, api.Metric{Name: "echo_limit", Help: "1 while that limit of the volunteer holds.",
			Kind: "gauge", Value: 1, Labels: map[string]string{"limit": l}})
	}
	return out
}

// judgeMetrics returns samples about the judging of pages: its memory, and pages on which a process
// died.
func judgeMetrics(quarantined int64, crawl crawler.Stats) []api.Metric {
	return []api.Metric{
		api.Gauge("echo_keys_quarantined",
			"Keys of the slices owned that are left alone, because processes died while they judged them.",
			float64(quarantined)),
		api.Counter("echo_quarantined_total", "Keys put into quarantine by this peer since the start.", crawl.Quarantined),
		api.Counter("echo_suspects_total", "Fetches of Keys that were under way when a process died, since the start.",
			crawl.Suspects),
		api.Gauge("echo_judge_memory_limit_bytes", "Most memory that pages may take while they are read and judged.",
			float64(crawl.Memory.Limit)),
		api.Gauge("echo_judge_memory_bytes", "Memory held for pages that are read and judged.",
			float64(crawl.Memory.Held)),
		api.Counter("echo_judge_memory_waits_total", "Pages that waited for memory since the start.",
			crawl.Memory.Waits),
		api.Counter("echo_judge_memory_over_total",
			"Pages that may take more memory than there is, and waited for all of it, since the start.",
			crawl.Memory.Over),
	}
}
