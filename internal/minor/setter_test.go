package minor_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/admissiontest/admissiontest/internal/minor"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type valid struct{}

func (valid) ValidateInitialization() error { return nil }

type right struct {
	valid
	got meta.RESTMapper
}

func (r *right) SetRESTMapper(m meta.RESTMapper) { r.got = m }

type incomplete struct{}

func (incomplete) SetRESTMapper(meta.RESTMapper) {}

type wrongType struct{ valid }

func (wrongType) SetRESTMapper(*meta.DefaultRESTMapper) {}

type wrongResult struct{ valid }

func (wrongResult) SetRESTMapper(meta.RESTMapper) error { return nil }

func mapperSetter(t *testing.T, plugin any) (minor.Setter, error) {
	t.Helper()
	for _, wants := range minor.Table() {
		if wants.Interface == "WantsRESTMapper" {
			return wants.Setter(plugin)
		}
	}
	t.Fatal("no WantsRESTMapper")
	return minor.Setter{}, nil
}

func TestSetter(t *testing.T) {
	plugin := &right{}
	setter, err := mapperSetter(t, plugin)
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	if err := setter.Set(mapper); err != nil || plugin.got != mapper {
		t.Errorf("%v, got %v", err, plugin.got)
	}
	if err := setter.Set(nil); err != nil || plugin.got != nil {
		t.Errorf("nil: %v, got %v", err, plugin.got)
	}
	if err := setter.Set(5); err == nil || err.Error() != "got a value of type int, want meta.RESTMapper" {
		t.Errorf("wrong value: %v", err)
	}
	for _, test := range []struct {
		plugin any
		want   string
	}{
		{incomplete{}, "the plugin has no method ValidateInitialization() error, which is part of WantsRESTMapper: add it"},
		{wrongType{}, "its type is func(*meta.DefaultRESTMapper), that of WantsRESTMapper is func(k8s.io/apimachinery/pkg/api/meta.RESTMapper): give it that type"},
		{wrongResult{}, "its type is func(meta.RESTMapper) error, that of WantsRESTMapper is func(k8s.io/apimachinery/pkg/api/meta.RESTMapper): give it that type"},
	} {
		t.Run(fmt.Sprintf("%T", test.plugin), func(t *testing.T) {
			if _, err := mapperSetter(t, test.plugin); err == nil || err.Error() != test.want {
				t.Errorf("%T: %v\nwant %s", test.plugin, err, test.want)
			}
		})
	}
	if _, err := mapperSetter(t, valid{}); !errors.Is(err, minor.ErrNoMethod) {
		t.Errorf("no method: %v", err)
	}
}

func TestIdle(t *testing.T) {
	type loaders struct {
		Load   func(string) ([]string, string, error)
		Number int
		hidden func()
	}
	made, ok := minor.Idle(reflect.TypeFor[*loaders]()).(*loaders)
	if !ok || made.hidden != nil {
		t.Fatalf("%+v", made)
	}
	if list, text, err := made.Load("folder"); list != nil || text != "" || err != nil {
		t.Errorf("%v %v %v", list, text, err)
	}
	if got := minor.Idle(reflect.TypeFor[string]()); got != nil {
		t.Errorf("of a string: %v", got)
	}
}

func TestName(t *testing.T) {
	for want, of := range map[string]reflect.Type{
		"string":           reflect.TypeFor[string](),
		"<-chan struct {}": reflect.TypeFor[<-chan struct{}](),
		"[]k8s.io/apimachinery/pkg/runtime/schema.GroupResource": reflect.TypeFor[[]schema.GroupResource](),
		"*k8s.io/apimachinery/pkg/runtime/schema.GroupResource":  reflect.TypeFor[*schema.GroupResource](),
	} {
		t.Run(want, func(t *testing.T) {
			if got := minor.Name(of); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
