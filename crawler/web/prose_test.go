package web

import (
	"strings"
	"testing"
)

// Text is cut after whole words. The position of words does not depend on the parts in which the
// text came.
func TestProseIsTheSameInParts(t *testing.T) {
	text := strings.Repeat("a bc  def\tghij\u00a0klmno \n pqrstu ", 40)
	for most := 1; most < 200; most++ {
		whole, parts := prose{max: most}, prose{max: most}
		whole.add(text)
		for i, part := range strings.SplitAfter(text, "d") {
			if parts.add(part); i%7 == 0 {
				parts.add("")
			}
		}
		if whole.String() != parts.String() && !strings.HasPrefix(whole.String()+" ", parts.String()) {
			t.Errorf("at most %d: %q in one, %q in parts", most, whole.String(), parts.String())
		}
		if whole.Len() > most {
			t.Errorf("%d bytes, at most %d", whole.Len(), most)
		}
	}
}
