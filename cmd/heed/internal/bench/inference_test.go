package bench

import (
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

var smallConfig = GPT{"small", 2, 140, 8, 2, 1, 30}

// TestDecoding runs decoding beyond its capacity. Each step must follow at least 128 tokens.
func TestDecoding(t *testing.T) {
	s, _, next, err := decoding(smallConfig.config(), 2, decodePrompt, false)
	must.Do(t, err)
	for step := range 20 {
		must.Do(t, next.Run())
		if got, want := smallConfig.Length-s.Room(1), 129+step%12; got != want {
			t.Errorf("after step %d, a sequence has %d tokens, want %d", step, got, want)
		}
	}
}

// TestInference checks the work that decoding and a forward pass report.
func TestInference(t *testing.T) {
	c := smallConfig
	decoding := must.Get(prepareDecode(c.config(), 2, false))(t)
	must.Do(t, decoding.Run())
	_, p, err := c.model()
	must.Do(t, err)
	if want := 4 * float64(p.Count()-c.Length*c.Dim); decoding.Bytes != want || decoding.Tokens != 2 {
		t.Errorf("a step reads %v bytes for %d tokens, want %v for 2", decoding.Bytes, decoding.Tokens, want)
	}
	int8 := must.Get(prepareDecode(c.config(), 2, true))(t)
	must.Do(t, int8.Run())
	if 4*int8.Bytes != decoding.Bytes || int8.Flops != decoding.Flops {
		t.Errorf("a step with int8 weights reports %+v, want a quarter of the bytes of %+v", int8, decoding)
	}
	pass := must.Get(c.prepareForward(layers.Float32))(t)
	must.Do(t, pass.Run())
	training := must.Get(c.prepare(false, layers.Float32))(t)
	if pass.Tokens != training.Tokens || 3*pass.Flops != training.Flops || pass.Bytes != 0 {
		t.Errorf("the forward pass reports %+v, want a third of the operations of a training step, %+v", pass, training)
	}
}

// TestCompare checks which limit a share refers to.
func TestCompare(t *testing.T) {
	limits := Limits{GFLOPS: 200, GBPerS: 10}
	for _, test := range []struct {
		m    Measurement
		want float64
	}{
		{Measurement{GFLOPS: 50}, 0.25},
		{Measurement{GFLOPS: 20, GBPerS: 8}, 0.8},
	} {
		if test.m.Compare(limits); test.m.Share != test.want || test.m.Limits != limits {
			t.Errorf("%+v, want the limits %+v and the share %v", test.m, limits, test.want)
		}
	}
}
