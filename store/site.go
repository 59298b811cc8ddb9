package store

import (
	"errors"
	"fmt"
)

// Limits of a Site's state.
const (
	MaxRobotsBytes = 500 << 10 // of a robots.txt, RFC 9309 section 2.5
	MaxOrigins     = 16        // stored robots.txt of a site
	MaxSiteRow     = 2 * MaxOrigins * MaxRobotsBytes
	MaxPaceRow     = 128 << 10 // of a pace without its robots.txt, as JSON
	maxStopped     = 1 << 10   // bytes of Site.Stopped
	MaxSiteRobots  = 5 << 19   // all robots.txt of a site together, to fit a message
	MaxStops       = 64        // words in Site.Stops
	maxStopWord    = 64        // bytes of one
	MaxHints       = 64        // bytes of Site.Hints
)

// Check returns an error if st is over a limit.
func (st Site) Check() error {
	// Check returns an error if st is over a limit.
	var errs []error
	if len(st.Site) > MaxSiteBytes {
		errs = append(errs, fmt.Errorf("site of %d bytes, at most %d", len(st.Site), MaxSiteBytes))
	}
	if len(st.Robots) > MaxOrigins {
		errs = append(errs, fmt.Errorf("robots of %d origins, at most %d", len(st.Robots), MaxOrigins))
	}
	for origin, r := range st.Robots {
		if len(r.Body) > MaxRobotsBytes || len(origin) > MaxSiteBytes {
			errs = append(errs, fmt.Errorf("robots of %.100q: %d bytes, at most %d", origin, len(r.Body),
				MaxRobotsBytes))
		}
	}
	if st.Delay < 0 || st.BackOff < 0 || st.Fetched < 0 || st.Failures < 0 {
		errs = append(errs, errors.New("a negative delay, back-off or count"))
	}
	if len(st.Stopped) > maxStopped {
		errs = append(errs, fmt.Errorf("reason of %d bytes, at most %d", len(st.Stopped), maxStopped))
	}
	if len(st.Stops) > MaxStops {
		errs = append(errs, fmt.Errorf("%d reasons of stops, at most %d", len(st.Stops), MaxStops))
	}
	if len(st.Hints) > MaxHints {
		errs = append(errs, fmt.Errorf("%d bytes about hints, at most %d", len(st.Hints), MaxHints))
	}
	for why, n := range st.Stops {
		if len(why) > maxStopWord || n < 0 {
			errs = append(errs, fmt.Errorf("stop %.100q: %d", why, n))
		}
	}
	return errors.Join(errs...)
}
