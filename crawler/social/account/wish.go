package account

// Opted is the wish not to be collected that p has said, "" = none. Hashtags are meant
// for programs like this; the flags of a server say how to be shown, and are obeyed there (NoIndex), but
// for that of who is not to be shown to us at all.
func Opted(flags []string) string {
	for _, f := range flags {
		switch f {
		case "#nobot", "#nocrawl", "#noarchive", NotLoggedIn:
			return f
		}
	}
	return ""
}

// NotLoggedIn is the label by which an account asks not to be shown to who is not logged in, as we are not.
const NotLoggedIn = "!no-unauthenticated"
