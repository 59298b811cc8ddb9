package account

import (
	"errors"

	"github.com/echo-node/echo-node/crawler/service"
)

// NotThere reports whether err says that the account does not exist, and whether the API itself
// said so.
func NotThere(err error) (gone, api bool) {
	var f *service.Fault
	if errors.As(err, &f) && f.Word == service.Gone {
		return true, f.FromAPI
	}
	return false, false
}
