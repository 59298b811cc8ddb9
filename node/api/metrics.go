package api

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/echo-node/echo-node/node/safetext"
)

// metrics is one server's own registry. It has the metrics of the Peer, of the server, and of
// the Go runtime.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(read func() []Metric) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "echo_http_requests_total", Help: "HTTP requests answered.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "echo_http_seconds", Help: "Time to answer an HTTP request.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10},
		}, []string{"route"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, peerCollector(read),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// observe counts one response. The route label is the pattern that matched, so requests cannot
// create new series.
func (m *metrics) observe(r *http.Request, status int, elapsed time.Duration) {
	route := r.Pattern
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(elapsed.Seconds())
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, Registry: m.registry, MaxRequestsInFlight: 4,
	})
}

// peerCollector reads the Peer's samples at each scrape.
type peerCollector func() []Metric

// Describe describes nothing, because the samples are known only when they are read.
func (peerCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the samples. An invalid sample does not affect the others.
func (c peerCollector) Collect(out chan<- prometheus.Metric) {
	for _, m := range c() {
		names := slices.Sorted(maps.Keys(m.Labels))
		values := make([]string, len(names))
		for i, n := range names {
			values[i] = safetext.Line(m.Labels[n])
		}
		kind := prometheus.GaugeValue
		if m.Kind == "counter" {
			kind = prometheus.CounterValue
		}
		desc := prometheus.NewDesc(m.Name, m.Help, names, nil)
		sample, err := prometheus.NewConstMetric(desc, kind, m.Value, values...)
		if err != nil {
			sample = prometheus.NewInvalidMetric(desc, err)
		}
		out <- sample
	}
}
