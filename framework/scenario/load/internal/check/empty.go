package check

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// saysSomething reports fields of an expectation that every result meets: empty lists and maps, empty
// strings, and false where only true is an expectation.
func (c *checker) saysSomething(then *strictyaml.Node, where *decode.Place) {
	c.notEmpty(then, where)
	for _, name := range []string{"code", "reason", "message", "details", "object", "audit", "distinct", "overlapping"} {
		c.notEmpty(then.Get(name), where.Field(name))
	}
	for _, name := range []string{"calls", "plugins"} {
		for _, list := range []string{"include", "exclude"} {
			c.notEmpty(then.Get(name).Get(list), where.Field(name).Field(list))
		}
	}
	for _, name := range []string{"serial", "answeredLast"} {
		if value := then.Get(name); value.Plain() == false {
			c.Fail(value, fmt.Sprintf("%s is false, which every result meets; expected true", where.Field(name)), "remove the field")
		}
	}
	c.noEmptyText(then.Get("message"), where.Field("message"))
	c.noEmptyText(then.Get("refusedBy").Get("validation"), where.Field("refusedBy").Field("validation"))
}

// notEmpty reports an empty list or mapping.
func (c *checker) notEmpty(n *strictyaml.Node, where *decode.Place) {
	if n != nil && len(n.Items)+len(n.Fields) == 0 && (n.Kind == strictyaml.KindList || n.Kind == strictyaml.KindMapping) {
		c.Fail(n, fmt.Sprintf("%s is empty, so that every result meets it; expected a value", where), "remove the field, or say what is expected")
	}
}

// noEmptyText reports an empty string, or one in a list: every string contains it.
func (c *checker) noEmptyText(n *strictyaml.Node, where *decode.Place) {
	if n == nil {
		return
	}
	for _, item := range n.AsList().Items {
		if item.Kind == strictyaml.KindText && item.Raw == "" {
			c.Fail(item, fmt.Sprintf("%s has an empty string, which every result meets; expected a part of the string", where), "remove it, or say what is expected")
		}
	}
}

// anyValue reports the expectation of any value for what always has one.
func (c *checker) anyValue(n *strictyaml.Node, where *decode.Place) {
	not := n.Get("$not")
	if n.Get("$absent").Plain() == any(false) || not != nil && (not.Kind == strictyaml.KindNull || not.Get("$absent").Plain() == true) {
		c.Fail(n, fmt.Sprintf("%s always has a value, so that every result meets this; expected a value", where), "remove the field, or say which value is expected")
	}
}

// anyNumber reports the expectation of any number for what is never negative.
func (c *checker) anyNumber(n *strictyaml.Node, where *decode.Place) {
	bounds := n.Get("$number")
	least, ok := bounds.Get("atLeast").Plain().(int64)
	if ok && least <= 0 && !bounds.Has("atMost") {
		c.Fail(n, fmt.Sprintf("%s is never negative, so that every number meets this; expected a limit", where), `write "atMost:", or a higher "atLeast:"`)
	}
}

// wait checks a step that waits for an object.
func (c *checker) wait(n *strictyaml.Node, where *decode.Place) {
	object := n.Get("object")
	c.notEmpty(object, where.Field("object"))
	c.Expected(object, where.Field("object"))
	if object != nil && n.Get("gone").Plain() == true {
		c.Fail(object, fmt.Sprintf("%s has gone and object; expected one of them", where), "remove one of them")
	}
}

// samples checks what is expected of a metric.
func (c *checker) samples(n *strictyaml.Node, where *decode.Place) {
	samples, where := n.Get("samples"), where.Field("samples")
	c.Expected(samples, where)
	c.anyValue(samples, where)
	c.Fields(samples, where, reflect.TypeFor[[]sample](), "a sample of a metric")
	if strings.HasPrefix(n.Text("name"), "apiserver_admission_webhook_") {
		c.calledWebhook(n.Get("labels").Get("name"))
	}
}
