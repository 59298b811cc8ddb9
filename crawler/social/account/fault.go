package account

import (
	"errors"

	"github.com/echo-node/echo-node/crawler/service"
)

// NotThere says whether err is that the account is not there, and whether the API itself said so.
func NotThere(err error) (gone, api bool) {
	var f *service.Fault
	if errors.As(err, &f) && f.Word == service.Gone {
		return true, f.FromAPI
	}
	return false, false
}
