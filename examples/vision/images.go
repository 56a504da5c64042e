package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/train"
)

const (
	side    = 28 // width and height of an image in pixels
	classes = 10
	stride  = 4 // number of pixels from one patch to the next
	margin  = 2 // number of pixels by which a patch overlaps its neighbours
	patch   = stride + 2*margin
	grid    = side / stride // number of patches per side
)

// images are grey images of 28 x 28 bytes and their labels.
type images struct{ pixels, labels []byte }

// load reads images from a folder. The argument name is train or t10k.
func load(folder, name string) (images, error) {
	pixels, err1 := readIDX(filepath.Join(folder, name+"-images-idx3-ubyte.gz"), side, side)
	labels, err2 := readIDX(filepath.Join(folder, name+"-labels-idx1-ubyte.gz"))
	if err := errors.Join(err1, err2); err != nil {
		return images{}, err
	}
	if n := len(pixels) / (side * side); n != len(labels) {
		return images{}, fmt.Errorf("%s: %d images have %d labels", name, n, len(labels))
	}
	for i, l := range labels {
		if l >= classes {
			return images{}, fmt.Errorf("%s: labels must be below %d, got %d for image %d", name, classes, l, i)
		}
	}
	return images{pixels, labels}, nil
}

// split returns the first n images and the rest.
func (s images) split(n int) (first, others images) {
	return images{s.pixels[:n*side*side], s.labels[:n]}, images{s.pixels[n*side*side:], s.labels[n:]}
}

// A view is an image shifted by some pixels.
type view struct{ image, down, right int }

// plain returns a dataset of the unchanged images.
func (s images) plain() train.Dataset {
	return train.Dataset{Len: len(s.labels), Batch: func(examples []int) ([]*tensor.Dense, error) {
		return s.batch(examples, func(e int) view { return view{image: e} }), nil
	}}
}

// varied returns a dataset of shifted images. Each epoch has all images in a new random order. Each image is shifted by
// at most one pixel vertically and horizontally. Epochs have different examples, so examples are numbered across
// epochs.
func (s images) varied(seed uint64) train.Dataset {
	n, epoch, order := len(s.labels), -1, []int(nil)
	return train.Dataset{Len: n, Order: train.Fresh, Batch: func(examples []int) ([]*tensor.Dense, error) {
		return s.batch(examples, func(e int) view {
			if epoch != e/n {
				epoch = e / n
				order = rand.New(rand.NewPCG(seed, uint64(epoch))).Perm(n)
			}
			draw := rand.New(rand.NewPCG(^seed, uint64(e)))
			return view{order[e%n], draw.IntN(3) - 1, draw.IntN(3) - 1}
		}), nil
	}}
}

// batch returns the images' patches, (B, 49, 64), and labels, (B).
func (s images) batch(examples []int, look func(example int) view) []*tensor.Dense {
	x, labels := make([]float32, 0, len(examples)*grid*grid*patch*patch), make([]int, len(examples))
	for i, e := range examples {
		v := look(e)
		labels[i] = int(s.labels[v.image])
		x = v.patches(x, s.pixels[v.image*side*side:][:side*side])
	}
	return []*tensor.Dense{
		tensor.New(tensor.WithShape(len(examples), grid*grid, patch*patch), tensor.WithBacking(x)),
		tensor.New(tensor.WithShape(len(examples)), tensor.WithBacking(labels)),
	}
}

// patches appends an image's patches to x, row by row, scaled to mean 0 and variance 1 over all images. Pixels outside
// the image are black.
func (v view) patches(x []float32, pixels []byte) []float32 {
	for p := range grid * grid {
		top, left := p/grid*stride-margin-v.down, p%grid*stride-margin-v.right
		for i := range patch * patch {
			row, column := top+i/patch, left+i%patch
			level := byte(0)
			if row >= 0 && row < side && column >= 0 && column < side {
				level = pixels[row*side+column]
			}
			x = append(x, (float32(level)/255-0.286)/0.353)
		}
	}
	return x
}
