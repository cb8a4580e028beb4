package report_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/internal/report"
)

// WithTexts replaces every text, apart from names and words of our own, and leaves the original as it is.
func TestWithTexts(t *testing.T) {
	var outcome report.Outcome
	fill(reflect.ValueOf(&outcome).Elem())
	replaced := outcome.WithTexts(func(string) string { return "b" })
	var kept []string
	texts(reflect.ValueOf(replaced), "", func(field, text string) {
		if text == "a" {
			kept = append(kept, field)
		}
	})
	slices.Sort(kept)
	want := []string{
		".Area", ".Behaviours", ".Evidence.Decisions.Effect", ".Evidence.Decisions.Reason",
		".Evidence.NotSeen.Service", ".Evidence.NotSeen.Webhooks", ".Evidence.Timeline.Patch.Op", ".Evidence.Timeline.Phase",
		".Evidence.Timeline.Plugin", ".Evidence.Timeline.Webhook", ".File", ".Fix", ".KnownFailing", ".Level", ".Name", ".Requirement",
		".Rerun", ".Source", ".Verdict",
	}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("fields that are kept: -want +got\n%s", diff)
	}
	texts(reflect.ValueOf(outcome), "", func(field, text string) {
		if text != "a" {
			t.Errorf("the original%s is %q", field, text)
		}
	})
}

// fill sets each string to "a", and each list to one item.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("a")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

// texts calls a function for each string.
func texts(v reflect.Value, field string, do func(field, text string)) {
	switch v.Kind() {
	case reflect.String:
		do(field, v.String())
	case reflect.Slice:
		for i := range v.Len() {
			texts(v.Index(i), field, do)
		}
	case reflect.Pointer:
		texts(v.Elem(), field, do)
	case reflect.Struct:
		for i := range v.NumField() {
			texts(v.Field(i), field+"."+v.Type().Field(i).Name, do)
		}
	}
}
