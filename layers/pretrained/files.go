package pretrained

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/heed-go/heed/internal/text"
)

const (
	weights  = "model.safetensors"
	index    = weights + ".index.json"
	maxIndex = 1 << 24 // bytes of an index
)

// Files returns the names of the files with a folder's weights: model.safetensors, the files that
// model.safetensors.index.json lists, or the only safetensors file, whatever its name; and the file of a Dense module.
// It returns an error if there is neither, or if a listed file is missing or lies in another folder. PyTorch's pickles
// are never read, because opening a pickle can run any program; the error says how to convert them.
func Files(fsys fs.FS) ([]string, error) {
	modules, folder, err := readModules(fsys)
	if err != nil {
		return nil, err
	}
	files, err := filesIn(fsys, folder)
	for _, m := range modules {
		if err == nil && m.kind == "Dense" {
			var own []string
			own, err = filesIn(fsys, m.path)
			files = append(files, own...)
		}
	}
	return files, err
}

func filesIn(fsys fs.FS, folder string) ([]string, error) {
	if exists(fsys, path.Join(folder, weights)) {
		return []string{path.Join(folder, weights)}, nil
	}
	var list struct {
		Files map[string]string `json:"weight_map"`
	}
	err := readJSON(fsys, path.Join(folder, index), maxIndex, &list)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		other, err := fs.Glob(fsys, path.Join(folder, "*.safetensors"))
		if err == nil && len(other) == 1 && !exists(fsys, path.Join(folder, adapter)) {
			return other, nil
		}
		return nil, noWeights(fsys, folder, other)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", index, err)
	case len(list.Files) == 0:
		return nil, fmt.Errorf("%s: weight_map must name the file of each tensor, got none", index)
	}
	var files []string
	for tensor, file := range list.Files {
		if path.Base(file) != file || !fs.ValidPath(file) {
			return nil, fmt.Errorf("%s: tensor %.100q must lie in a file of the same folder, got %.100q", index, tensor, file)
		}
		files = append(files, path.Join(folder, file))
	}
	slices.Sort(files)
	files = slices.Compact(files)
	for _, file := range files {
		if !exists(fsys, file) {
			return nil, fmt.Errorf("%s lists %.100q, but there is no such file: download it too", index, file)
		}
	}
	return files, nil
}

// noWeights returns the error for a folder without weights, or with several other safetensors files.
func noWeights(fsys fs.FS, folder string, other []string) error {
	for _, name := range []string{"pytorch_model.bin", "pytorch_model.bin.index.json"} {
		if exists(fsys, path.Join(folder, name)) {
			return fmt.Errorf("the weights are in a PyTorch pickle, which could run any program when it is opened. Convert it first, in the folder, "+
				"with Python, torch and safetensors:\n  python -c \"import glob, torch, safetensors.torch as s; s.save_file({k: v.clone().contiguous() "+
				"for f in glob.glob('pytorch_model*.bin') for k, v in torch.load(f, weights_only=True, map_location='cpu').items()}, '%s')\"", weights)
		}
	}
	if exists(fsys, path.Join(folder, adapter)) {
		return unsupported(adapter, "", "a folder with all weights: merge the adapter into its model first")
	}
	if len(other) > 1 {
		return fmt.Errorf("expected %s, or one file of another name, got %s: rename the one to use to %s", weights,
			text.List(len(other), 10, ", ", func(i int) string { return strconv.Quote(path.Base(other[i])) }), weights)
	}
	return fmt.Errorf("there are no weights: expected %s, or %s and the files that it lists", weights, index)
}
