package docs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

// Save weights to a file, and load them into another model of the same shape.
func Example_weights() {
	dir, err := os.MkdirTemp("", "heed")
	check(err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "encoder.safetensors")
	encoder := func(seed uint64) *layers.Params {
		params, err := layers.NewParams(tensor.Float32, seed)
		check(err)
		_, err = layers.NewEncoder(params, layers.ModelConfig{Vocab: 10, Dim: 8, Layers: 2, Positions: layers.Rotary{}, Outputs: 3})
		check(err)
		return params
	}

	params := encoder(1)
	check(params.Save(file, map[string]string{"made by": "me"}))

	other := encoder(2)
	loaded, err := other.Load(file, layers.LoadOptions{})
	check(err)
	fmt.Println(loaded.Metadata)

	loaded, err = other.Load(file, layers.LoadOptions{ // the blocks alone
		Drop:    func(name string) bool { return name == "head.weight" || name == "head.bias" },
		Partial: true,
	})
	check(err)
	fmt.Println("kept:", loaded.Kept)

	check(params.SaveTensors(file, layers.PyTorch(params), nil)) // for load_state_dict
	// Output:
	// map[made by:me]
	// kept: [head.weight head.bias]
}

// A model from a run folder answers several goroutines at once.
func Example_open() {
	dir, err := os.MkdirTemp("", "heed")
	check(err)
	defer os.RemoveAll(dir)
	config, err := task.Named("copy", 4)
	check(err)
	config.Model.Layers = 1
	config.Training.MaxEpochs, config.Training.Optimizer.LearningRate = 3, 0.01
	t, err := task.New(config)
	check(err)
	_, err = t.Train(context.Background(), dir, train.RunOptions{})
	check(err)

	m, err := model.OpenFS(os.DirFS(dir)) // or model.Open(dir)
	check(err)
	var both sync.WaitGroup
	for _, word := range []string{"go", "heed"} {
		both.Go(func() {
			answer, err := m.Predict(word)
			check(err)
			fmt.Println(answer)
		})
	}
	both.Wait()
	answers, err := m.PredictAll(context.Background(), []string{"batch", "of", "many"}, model.PredictOptions{})
	check(err)
	for _, a := range answers {
		fmt.Printf("%q %v\n", a.Text, a.Err)
	}
	// Unordered output:
	// heed
	// go
	// "" "batch": task copy: a source must have at most 4 symbols, got 5
	// "of" <nil>
	// "many" <nil>
}
