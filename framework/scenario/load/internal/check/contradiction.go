package check

import (
	"fmt"
	"net/http"

	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// contradiction reports expectations that no response can meet: allowed together with a code or a
// reason that excludes it.
func (c *checker) contradiction(then *strictyaml.Node, where *decode.Place) {
	codes := then.Get("code")
	succeeds, fails := 0, 0
	if codes != nil {
		for _, code := range codes.AsList().Items {
			switch number, ok := code.Value.(int64); {
			case !ok:
				return // the decoder has reported it
			case number < http.StatusBadRequest:
				succeeds++
			default:
				fails++
			}
		}
	}
	reason := then.Get("reason")
	refusedFor := reason != nil && !isEmptyText(reason)
	allowed := then.Get("allowed")
	given, isBool := allowed.Plain().(bool)
	expected := "allowed: true with a code below 400 and without reason, or allowed: false with a code of 400 or more"
	switch {
	case isBool && given && fails > 0 && succeeds == 0, isBool && !given && succeeds > 0 && fails == 0:
		c.Fail(codes, fmt.Sprintf("%s expects allowed: %t and code: %s; expected %s", where, given, codeText(codes), expected), "remove one of them")
	case isBool && given && refusedFor:
		c.Fail(reason, fmt.Sprintf("%s expects allowed: true and a reason, but only a refusal has a reason; expected %s", where, expected), "remove one of them")
	case !isBool && refusedFor && succeeds > 0 && fails == 0:
		c.Fail(codes, fmt.Sprintf("%s expects code: %s and a reason, but only a refusal has a reason; expected %s", where, codeText(codes), expected), "remove one of them")
	}
}

// isEmptyText reports whether a reason is one or several empty texts, which a success has.
func isEmptyText(n *strictyaml.Node) bool {
	for _, item := range n.AsList().Items {
		if item.Kind == strictyaml.KindText && item.Raw == "" {
			return true
		}
	}
	return false
}

// codeText returns codes as they are written.
func codeText(n *strictyaml.Node) string {
	text := ""
	for i, item := range n.AsList().Items {
		if i > 0 {
			text += " or "
		}
		text += item.Raw
	}
	return text
}
