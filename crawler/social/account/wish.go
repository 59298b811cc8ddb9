package account

// Opted returns the flag that asks not to be collected, "" if there is none. These hashtags address
// programs like this one. The flags of a server say how an account is to be shown (NoIndex). They
// do not count here, except NotLoggedIn, which forbids to show the account to us at all.
func Opted(flags []string) string {
	for _, f := range flags {
		switch f {
		case "#nobot", "#nocrawl", "#noarchive", NotLoggedIn:
			return f
		}
	}
	return ""
}

// NotLoggedIn is the label of accounts that only logged-in users may see. This program is not
// logged in.
const NotLoggedIn = "!no-unauthenticated"
