package layers

import (
	"reflect"
	"slices"
	"testing"
)

// TestConfigsReachTheirParts sets each field that a model shares with its blocks, and a block with its layers, and finds
// it there: one that isn't passed on would be ignored silently.
func TestConfigsReachTheirParts(t *testing.T) {
	passes := func(name string, from any, to func() []any, except ...string) {
		v := reflect.ValueOf(from).Elem()
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() || slices.Contains(except, field.Name) {
				continue
			}
			v.SetZero()
			switch f := v.Field(i); f.Kind() {
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Int:
				f.SetInt(7)
			case reflect.Float64:
				f.SetFloat(0.7)
			case reflect.Pointer:
				f.Set(reflect.New(f.Type().Elem()))
			case reflect.Func:
				f.Set(reflect.ValueOf(Init(Ones)))
			default:
				t.Fatalf("%s.%s: a test for a %v is missing", name, field.Name, f.Kind())
			}
			arrived := false
			for _, part := range to() {
				p := reflect.ValueOf(part).FieldByName(field.Name)
				arrived = arrived || p.IsValid() && !p.IsZero()
			}
			if !arrived {
				t.Errorf("%s.%s doesn't arrive", name, field.Name)
			}
		}
	}
	var model ModelConfig
	passes("ModelConfig", &model, func() []any { return []any{model.block()} },
		"Vocab", "MaxLen", "Layers", "Outputs", "FinalNorm", "Sinusoidal", "ALiBi", "NoPositions", "Tied", "EmbeddingScale", "EmbeddingInit") // the model's own
	var block BlockConfig
	passes("BlockConfig", &block, func() []any { return []any{block.attention(), block.feedForward()} },
		"RMSNorm", "PostNorm", "Cross") // the block's own
}
