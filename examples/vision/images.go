package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/train"
)

const (
	side    = 28 // pixels of an image's side
	classes = 10
	stride  = 4 // pixels from one patch to the next
	margin  = 2 // by which a patch reaches into its neighbours
	patch   = stride + 2*margin
	grid    = side / stride // patches of a side
)

// images are grey, of 28 x 28 bytes, a label each.
type images struct{ pixels, labels []byte }

// load reads the images of a folder whose files have a name as train or t10k.
func load(folder, name string) (images, error) {
	shape, pixels, err := readGzip(filepath.Join(folder, name+"-images-idx3-ubyte.gz"))
	if err != nil {
		return images{}, err
	}
	count, labels, err := readGzip(filepath.Join(folder, name+"-labels-idx1-ubyte.gz"))
	if err != nil {
		return images{}, err
	}
	if len(shape) != 3 || shape[1] != side || shape[2] != side || len(count) != 1 || count[0] != shape[0] {
		return images{}, fmt.Errorf("%s: images must have shape (N, %d, %d) and labels (N), got %v and %v", name, side, side, shape, count)
	}
	for i, l := range labels {
		if l >= classes {
			return images{}, fmt.Errorf("%s: labels must be below %d, got %d for image %d", name, classes, l, i)
		}
	}
	return images{pixels, labels}, nil
}

// split returns the first n images, and the others.
func (s images) split(n int) (first, others images) {
	return images{s.pixels[:n*side*side], s.labels[:n]}, images{s.pixels[n*side*side:], s.labels[n:]}
}

// A view is how an image is looked at: moved by some pixels.
type view struct{ image, down, right int }

// plain are the images as they are.
func (s images) plain() train.Dataset {
	return train.Dataset{Len: len(s.labels), Batch: func(examples []int) (train.Batch, error) {
		return s.batch(examples, func(e int) view { return view{image: e} }), nil
	}}
}

// varied are the images in an order of their own in each epoch, moved by up to a pixel up or down and left or right: no
// epoch has quite the examples of another, so each example of each has a number.
func (s images) varied(seed uint64) train.Dataset {
	n, epoch, order := len(s.labels), -1, []int(nil)
	return train.Dataset{Len: n, Order: train.Fresh, Batch: func(examples []int) (train.Batch, error) {
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

// batch makes the patches of images, (B, 49, 64), and their labels, (B).
func (s images) batch(examples []int, look func(example int) view) train.Batch {
	x, labels := make([]float32, 0, len(examples)*grid*grid*patch*patch), make([]int, len(examples))
	for i, e := range examples {
		v := look(e)
		labels[i] = int(s.labels[v.image])
		x = v.patches(x, s.pixels[v.image*side*side:][:side*side])
	}
	return train.Batch{Weight: float64(len(examples)), Values: []*tensor.Dense{
		tensor.New(tensor.WithShape(len(examples), grid*grid, patch*patch), tensor.WithBacking(x)),
		tensor.New(tensor.WithShape(len(examples)), tensor.WithBacking(labels)),
	}}
}

// patches appends an image's patches, row by row, with mean 0 and variance 1 over all images: black outside.
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
