package layers

import (
	"reflect"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
)

// TestOptionsArrive sets every option and every part of the mask. The op's fields with the same names must have the
// same values.
func TestOptionsArrive(t *testing.T) {
	options := AttentionOptions{Mask: Mask{Causal: true}}
	g := G.NewGraph()
	number := 2
	for _, part := range []reflect.Value{reflect.ValueOf(&options).Elem(), reflect.ValueOf(&options.Mask).Elem()} {
		for i := range part.NumField() {
			field := part.Field(i)
			if !field.CanSet() || !field.IsZero() {
				continue
			}
			number++
			switch field.Addr().Interface().(type) {
			case *int:
				field.SetInt(int64(number))
			case *float64:
				field.SetFloat(float64(number))
			case *ScoreFunc:
				field.Set(reflect.ValueOf(ScoreFunc(func(s float64, _, _, _ int) (float64, float64) { return s, 1 })))
			case *[]float64:
				field.Set(reflect.ValueOf([]float64{float64(number)}))
			case **Window:
				field.Set(reflect.ValueOf(&Window{Left: number, Right: number}))
			case **Distances: // they arrive among the options
				field.Set(reflect.ValueOf(&Distances{Buckets: number}))
			case **BlockMask:
				field.Set(reflect.ValueOf(must.Get(NewBlockMask(number, number, func(int, int) bool { return true }))(t)))
			case **G.Node:
				field.Set(reflect.ValueOf(G.NewTensor(g, tensor.Float64, 1, G.WithShape(number), G.WithName(part.Type().Field(i).Name))))
			default:
				t.Fatalf("%s has a type that this test can't set, %v: add it here", part.Type().Field(i).Name, field.Type())
			}
		}
	}
	arrived := func(got, want reflect.Value) {
		for i := range want.NumField() {
			name, x := want.Type().Field(i).Name, want.Field(i)
			if name == "layer" || name == "Mask" || name == "Distances" {
				continue
			}
			if x.IsZero() {
				t.Errorf("this test doesn't set %s: add it here", name)
			}
			if x.Kind() == reflect.Func { // functions can't be compared
				if op := got.FieldByName(name); op.Pointer() != x.Pointer() {
					t.Errorf("the op has another function as its %s", name)
				}
				continue
			}
			if op := got.FieldByName(name); !op.IsValid() || !reflect.DeepEqual(op.Interface(), x.Convert(op.Type()).Interface()) {
				t.Errorf("the op's field %s is %v, want %v", name, op, x)
			}
		}
	}
	if d := options.ops().Distances; d == nil || d.Buckets != options.Mask.Distances.Buckets {
		t.Errorf("the op's field Distances is %+v", d)
	}
	arrived(reflect.ValueOf(options.ops()), reflect.ValueOf(options))
	arrived(reflect.ValueOf(options.ops().Mask), reflect.ValueOf(options.Mask))
}
