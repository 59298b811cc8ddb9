package account

import (
	"time"

	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/partition"
)

// Looks reports whether a visit to a Key with that state begins with a look-up of its subject.
// every is the time after which a profile is fetched again. counted says that the claimed number of
// posts changes when the account posts.
func (st *State) Looks(k partition.Key, now time.Time, every time.Duration, counted bool) bool {
	switch k.Kind() {
	case partition.KindName:
		return true
	case partition.KindFollowers, partition.KindFollowing:
		return st.List == nil || len(st.List.At) == 0
	case partition.KindAccount:
		// the verdict is given again from what is stored
		if st.Outside == community.IsUndecided && st.ID != "" && now.Sub(st.Profiled) < Outsiders {
			return false
		}
		return st.ProfileDue(now, every) || st.MayBeIdle(counted)
	}
	return false
}

// ProfileDue reports whether the profile of an account must be fetched again.
func (st *State) ProfileDue(now time.Time, every time.Duration) bool {
	return st.ID == "" || now.Sub(st.Profiled) >= every || st.Outside != ""
}

// MayBeIdle reports whether a look-up can show that an account has nothing new. For that all its
// posts must have been read, and its claimed number of posts must be trusted.
func (st *State) MayBeIdle(counted bool) bool {
	return !st.LookedUp.At.IsZero() && st.LookedUp.Lies == 0 && st.Mark.Walk == nil && st.Boosts.Walk == nil &&
		counted
}
