package extremes

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	var memory []byte
	ended := make(chan struct{})
	defer close(ended)
	for name, use := range map[string]func() ([]float64, error){
		"time":   func() ([]float64, error) { <-ended; return nil, nil },
		"NaN":    func() ([]float64, error) { return []float64{1, math.NaN()}, nil },
		"−Inf":   func() ([]float64, error) { return []float64{math.Inf(-1)}, nil },
		"panic":  func() ([]float64, error) { panic("at once") },
		"memory": func() ([]float64, error) { memory = make([]byte, 200e6); return nil, errors.New("too late") },
	} {
		limit := time.Minute
		if name == "time" {
			limit = time.Millisecond
		}
		if err := try(limit, use); !errors.As(err, new(*failure)) {
			t.Errorf("%s: got %v, want a *failure", name, err)
		}
	}
	_ = memory
	if err := try(time.Minute, func() ([]float64, error) { return []float64{math.NaN()}, errors.New("no") }); errors.As(err, new(*failure)) || err == nil {
		t.Errorf("NaN with an error: got %v, want an error that isn't a *failure", err)
	}
	if err := try(time.Minute, func() ([]float64, error) { return []float64{1}, nil }); err != nil {
		t.Errorf("finite results: got %v, want no error", err)
	}
}

func TestNumbers(t *testing.T) {
	type inner struct {
		Rate   float64
		hidden int
	}
	c := struct {
		inner
		Inner    inner
		Outer    struct{ Inner inner }
		Pointer  *inner
		List     []inner
		Baseline *float64
		Name     string
		Seed     uint64
	}{Pointer: &inner{hidden: 1}, List: make([]inner, 2), Baseline: new(1.0)}
	var names []string
	visit := func(name string, n reflect.Value) { names = append(names, name); n.Set(extremes(n.Type())[0]) }
	numbers(reflect.ValueOf(&c).Elem(), "", nil, visit)
	if want := []string{".Inner.Rate", ".Outer.Inner.Rate", ".Pointer.Rate", ".List[0].Rate", ".Baseline", ".Seed"}; !slices.Equal(names, want) {
		t.Errorf("numbers visits %v, want %v", names, want)
	}
	names = nil
	numbers(reflect.ValueOf(&c).Elem(), "", map[reflect.Type]bool{reflect.TypeFor[inner](): true}, visit)
	if want := []string{".Inner.Rate", ".Pointer.Rate", ".List[0].Rate", ".Baseline", ".Seed"}; !slices.Equal(names, want) {
		t.Errorf("if inner has its own Case, numbers visits %v, want %v", names, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil pointer to numbers didn't panic")
		}
	}()
	c.Baseline = nil
	numbers(reflect.ValueOf(&c).Elem(), "", nil, visit)
}
