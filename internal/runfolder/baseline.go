package runfolder

import (
	"fmt"
	"io"

	"github.com/heed-go/heed/internal/safetensors"
)

// WriteBaseline writes the baseline of the run with this id. The metadata gets the id.
func (w *Writer) WriteBaseline(id string, tensors []safetensors.Tensor, metadata map[string]string) error {
	metadata[runKey] = id
	return w.Write(BaselineFile, func(file io.Writer) error { return safetensors.Write(file, tensors, metadata) })
}

// ReadBaseline reads the tensors of a baseline's file, and its metadata. It returns an error if the file is damaged or
// belongs to a run with another id.
func ReadBaseline(r io.Reader, size int64, id string) ([]safetensors.Tensor, map[string]string, error) {
	file, err := safetensors.NewFile(r, size)
	if err != nil {
		return nil, nil, err
	}
	if found := file.Metadata[runKey]; found != id {
		return nil, nil, fmt.Errorf("it is the baseline of another run, %.24q…; the folder has the run %.24q…: one of them was changed or swapped; restore it", found, id)
	}
	tensors, err := file.Tensors(func(string) bool { return true })
	return tensors, file.Metadata, err
}
