package main

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// numbered returns n images. Image i has label i. Neighbouring pixels differ.
func numbered(n int) images {
	s := images{make([]byte, n*side*side), make([]byte, n)}
	for i := range s.pixels {
		s.pixels[i] = byte(1 + (i*101+i/(side*side))%255)
	}
	for i := range s.labels {
		s.labels[i] = byte(i)
	}
	return s
}

// TestPatches checks that patches are cut from the shifted image, that overlapping patches share pixels, and that
// pixels outside the image are black.
func TestPatches(t *testing.T) {
	pixels := numbered(1).pixels
	for _, v := range []view{{}, {down: 1, right: -1}, {down: -2, right: 2}} {
		x := v.patches(nil, pixels)
		if len(x) != 49*64 {
			t.Fatalf("%+v: got %d numbers, want 49 patches of 64", v, len(x))
		}
		for i, got := range x {
			row := i/64/7*4 - 2 + i%64/8 - v.down
			column := i/64%7*4 - 2 + i%8 - v.right
			level := byte(0)
			if row >= 0 && row < 28 && column >= 0 && column < 28 {
				level = pixels[row*28+column]
			}
			if want := (float32(level)/255 - 0.286) / 0.353; got != want {
				t.Fatalf("%+v: number %d of patch %d is %v, want %v", v, i%64, i/64, got, want)
			}
		}
	}
}

// TestVaried checks that an epoch has every image once, with its label. The order and the shifts must differ from those
// of the epoch before. A second call for the same batch must return the same batch.
func TestVaried(t *testing.T) {
	const n = 10
	s := numbered(n)
	d := s.varied(1)
	labels := func(examples []int) (patches [][]float32, labels []int) {
		b := must.Get(d.Batch(examples))(t)
		return slices.Collect(slices.Chunk(b[0].Data().([]float32), 49*64)), b[1].Data().([]int)
	}
	var epochs [2][]int // the labels, which identify the images
	seen := map[string]bool{}
	for e := range epochs {
		first := make([]int, n)
		for i := range first {
			first[i] = e*n + i
		}
		patches, got := labels(first)
		for i, p := range patches {
			seen[fmt.Sprint(p)] = true
			found := false
			for v := range 9 { // all nine shifts
				v := view{got[i], v/3 - 1, v%3 - 1}
				found = found || reflect.DeepEqual(p, v.patches(nil, s.pixels[got[i]*side*side:][:side*side]))
			}
			if !found {
				t.Errorf("example %d isn't image %d, shifted by at most one pixel", first[i], got[i])
			}
		}
		epochs[e] = slices.Clone(got)
		slices.Sort(got)
		for i, l := range got {
			if l != i {
				t.Fatalf("epoch %d has the images %v, want every image once", e, epochs[e])
			}
		}
	}
	if slices.Equal(epochs[0], epochs[1]) || len(seen) < 2*n-2 {
		t.Errorf("the epochs have the images %v, want two orders; they have %d different examples, want nearly %d", epochs, len(seen), 2*n)
	}
	if _, again := labels([]int{3, n + 3, 4}); !slices.Equal(again, []int{epochs[0][3], epochs[1][3], epochs[0][4]}) {
		t.Errorf("a second call for the same examples returns the images %v, want those of the epochs %v", again, epochs)
	}
	d = s.varied(2)
	if _, other := labels([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}); slices.Equal(other, epochs[0]) {
		t.Error("another seed gives the same order")
	}
}

// TestSplit checks that split loses no image and no label.
func TestSplit(t *testing.T) {
	s := numbered(5)
	first, others := s.split(3)
	if joined := (images{slices.Concat(first.pixels, others.pixels), slices.Concat(first.labels, others.labels)}); !reflect.DeepEqual(joined, s) {
		t.Error("the two parts together differ from all images")
	}
	if len(first.pixels) != 3*28*28 || len(first.labels) != 3 {
		t.Errorf("the first part has %d pixels and %d labels, want 3 images", len(first.pixels), len(first.labels))
	}
}
