package account

import (
	"time"

	"github.com/echo-node/echo-node/crawler/judge/community"
	"github.com/echo-node/echo-node/partition"
)

// Looks says whether a visit to a Key with that state begins with a look-up of its subject. every is after what time a
// profile is asked for again; counted says that the claim of the account changes when it has posted.
func (st *State) Looks(k partition.Key, now time.Time, every time.Duration, counted bool) bool {
	switch k.Kind() {
	case partition.KindName:
		return true
	case partition.KindFollowers, partition.KindFollowing:
		return st.List == nil || len(st.List.At) == 0
	case partition.KindAccount:
		// judged again by what is kept
		if st.Outside == community.IsUndecided && st.ID != "" && now.Sub(st.Profiled) < Outsiders {
			return false
		}
		return st.ProfileDue(now, every) || st.MayBeIdle(counted)
	}
	return false
}

// ProfileDue says whether the profile of an account is to be fetched anew.
func (st *State) ProfileDue(now time.Time, every time.Duration) bool {
	return st.ID == "" || now.Sub(st.Profiled) >= every || st.Outside != ""
}

// MayBeIdle says whether a look-up can tell that an account has nothing new: all its posts were read, and its counter
// is believed.
func (st *State) MayBeIdle(counted bool) bool {
	return !st.Told.At.IsZero() && st.Told.Lies == 0 && st.Mark.Walk == nil && st.Boosts.Walk == nil &&
		counted
}
