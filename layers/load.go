package layers

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/text"
)

// LoadOptions controls how Load matches the tensors of a file with the parameters. The zero LoadOptions fits a file
// that Save wrote for the same model.
type LoadOptions struct {
	// Tensors, if not nil, says how the file's tensors hold the parameters. PyTorch returns the table for a state dict.
	// With nil, each tensor holds the parameter with its name.
	Tensors []Tensor

	// Drop, if not nil, gets the name of each tensor in the file. If it returns true, Load skips the tensor as if the
	// file didn't contain it.
	Drop func(name string) bool

	// With Partial, parameters that the file doesn't contain keep their values. Without Partial, Load returns an error
	// if there are such parameters.
	Partial bool

	// With Ignore, Load skips tensors that match no parameter. Without Ignore, it returns an error if there are such
	// tensors.
	Ignore bool
}

// LoadReport holds the metadata of a file and lists the parameters and tensors that Load left out.
type LoadReport struct {
	Metadata map[string]string // nil if the file has none
	Kept     []string          // parameters that kept their values, in the order of All
	Unused   []string          // tensors that Load skipped because of Drop or Ignore, in the file's order
}

// Load sets all parameters of the set, in every scope, to the values in a safetensors file. The parameters keep their
// tensors and memory, so all graphs use the new values in their next run. No graph with these parameters may run during
// Load.
//
// Unless the options allow more, the file must have exactly one tensor for each parameter, with the parameter's name
// and shape, and no other tensors. The dtypes may be F16, BF16, F32 and F64; Load rounds to the nearest value. Tensors
// that no parameter needs may have any dtype. If tensors are missing, unexpected or of another shape, the error gives
// examples, with their names in the file. It also says if their names show that Tensors should be PyTorch's, or nil.
//
// Load returns an error if a value is NaN, infinite or too large for the parameters' dtype, or if the file's checksum
// doesn't match. Files written by Save have a checksum. Values go through a small buffer directly to the parameters.
// Load therefore reads the file twice, and sets parameters only the second time: after an error, no parameter has
// changed, unless another process changed the file between the two times. If all parameters that the file holds are
// blank (see Blank), Load reads it once, and an error about values leaves them undefined.
func (p *Params) Load(path string, o LoadOptions) (LoadReport, error) {
	return p.load(o, source{path, func() (*safetensors.File, error) { return safetensors.Open(path) }})
}

// LoadFS is like Load, but reads the files with these names in fsys, which hold a model together. No two files may have
// a tensor with the same name. The report has the metadata of all files; if several have a key, the last one counts.
func (p *Params) LoadFS(fsys fs.FS, files []string, o LoadOptions) (LoadReport, error) {
	var sources []source
	for _, name := range files {
		sources = append(sources, source{name, func() (*safetensors.File, error) { return safetensors.OpenFS(fsys, name) }})
	}
	return p.load(o, sources...)
}

// LoadFrom is like Load, but reads size bytes from r, for example weights in memory.
func (p *Params) LoadFrom(r io.ReaderAt, size int64, o LoadOptions) (LoadReport, error) {
	return p.load(o, source{"", func() (*safetensors.File, error) {
		return safetensors.NewFile(io.NewSectionReader(r, 0, size), size)
	}})
}

// A source is a file to load.
type source struct {
	name string // empty if it has none
	open func() (*safetensors.File, error)
}

// named adds the name of the source to an error.
func (s source) named(err error) error {
	if err == nil || s.name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

func (p *Params) load(o LoadOptions, sources ...source) (LoadReport, error) {
	defer p.set.forgetPanels() // even after an error: values may have changed
	return ops.ByDtype(p, load[float32], load[float64])(p.set, o, sources)
}

func load[T float32 | float64](s *paramSet, o LoadOptions, sources []source) (l LoadReport, err error) {
	var entries []safetensors.Entry
	holders := map[string]string{} // names of files
	for _, source := range sources {
		f, err := source.open()
		if err != nil {
			return LoadReport{}, err
		}
		f.Close()
		for _, e := range f.Entries {
			if other, ok := holders[e.Name]; ok {
				return LoadReport{}, fmt.Errorf("the tensor %.100q is in %s and in %s: each tensor must be in one file", e.Name, other, source.name)
			}
			holders[e.Name] = source.name
		}
		entries = append(entries, f.Entries...)
		if l.Metadata == nil {
			l.Metadata = f.Metadata
		}
		maps.Copy(l.Metadata, f.Metadata)
	}
	taken, err := match[T](s, entries, o, &l)
	if err != nil {
		if len(sources) == 1 {
			err = sources[0].named(err)
		}
		return LoadReport{}, err
	}
	blank := true
	for _, m := range taken {
		blank = blank && !slices.ContainsFunc(m.parts, func(q part[T]) bool { return !q.blank })
	}
	if !blank {
		err = readAll(sources, taken, true, false)
	}
	if err == nil {
		err = readAll(sources, taken, blank, true)
	}
	if err != nil {
		return LoadReport{}, err
	}
	for _, m := range taken {
		for _, q := range m.parts {
			q.Param.blank = false
		}
	}
	return l, nil
}

// readAll reads the tensors in taken and checks their values, and with checksums the checksums of the files. With set,
// it sets the parameters to the values.
func readAll[T float32 | float64](sources []source, taken map[string]*mapping[T], checksums, set bool) error {
	buf, n, garbage := new(buffers[T]), 0, 0
	for _, source := range sources {
		f, err := source.open()
		if err != nil {
			return err
		}
		if !checksums {
			f.SkipChecksum()
		}
		err = f.Each(func(name string) bool { return taken[name] != nil }, func(e safetensors.Entry, r io.Reader) error {
			m := taken[e.Name]
			if !e.Float() || !slices.Equal(e.Shape, m.shape) {
				return errChanged
			}
			n++
			if err := m.read(e, r, buf, set); err != nil || !set {
				return err
			}
			return quantizeLoaded(m, &garbage)
		})
		f.Close()
		if err != nil {
			return source.named(err)
		}
	}
	if n != len(taken) {
		return errChanged
	}
	return nil
}

var errChanged = errors.New("the file was changed while it was read")

// match returns the tensors to read by their names in the file, and sets Kept and Unused. Its error lists everything
// that doesn't fit.
func match[T float32 | float64](s *paramSet, entries []safetensors.Entry, o LoadOptions, l *LoadReport) (taken map[string]*mapping[T], err error) {
	table := o.Tensors
	if table == nil {
		table = s.ownTensors()
	}
	expected, left, err := mappings[T](s, table)
	if err != nil {
		return nil, err
	}
	byName := map[string]safetensors.Entry{}
	for _, e := range entries {
		if o.Drop == nil || !o.Drop(e.Name) {
			byName[e.Name] = e
		}
	}
	var missing, unexpected, different []string
	for _, q := range left {
		missing = append(missing, fmt.Sprintf("a Tensor with the parameter %q", q.Name))
	}
	var advice string
	taken = map[string]*mapping[T]{}
	loaded := map[string]bool{}
	for _, m := range expected {
		i := slices.IndexFunc(m.Names, func(name string) bool { _, ok := byName[name]; return ok })
		if i < 0 && m.Optional {
			continue
		}
		if i < 0 {
			missing = append(missing, fmt.Sprintf("%q of shape %v", m.Names[0], m.shape))
			continue
		}
		e := byName[m.Names[i]]
		switch {
		case !slices.Equal(e.Shape, m.shape):
			different = append(different, fmt.Sprintf("%q must have shape %v, got %v", e.Name, m.shape, tensor.Shape(e.Shape)))
		case !e.Float():
			different = append(different, fmt.Sprintf("%q must hold floating-point values, got %.20s", e.Name, e.Dtype))
		}
		taken[e.Name] = m
		for _, name := range m.Params {
			loaded[name] = true
		}
	}
	for _, q := range s.list {
		if !loaded[q.Name] {
			l.Kept = append(l.Kept, q.Name)
		}
	}
	for _, e := range entries {
		if taken[e.Name] != nil {
			continue
		}
		l.Unused = append(l.Unused, e.Name)
		_, kept := byName[e.Name]
		if kept && advice == "" {
			advice = s.adviseOnPyTorch(e.Name, o)
		}
		if kept && !o.Ignore {
			unexpected = append(unexpected, fmt.Sprintf("%.100q of shape %v", e.Name, tensor.Shape(e.Shape)))
		}
	}
	if o.Partial {
		missing = nil
	}
	var parts []string
	for _, p := range []struct {
		what string
		list []string
	}{{"missing", missing}, {"unexpected", unexpected}, {"different", different}} {
		if len(p.list) > 0 {
			parts = append(parts, p.what+": "+text.List(len(p.list), 3, ", ", func(i int) string { return p.list[i] }))
		}
	}
	if parts != nil {
		return nil, errors.New("the weights don't fit the model: " + strings.Join(parts, "; ") + advice)
	}
	return taken, nil
}

// adviseOnPyTorch returns advice about the option Tensors if the name of an unmatched tensor shows that the option is
// wrong. Otherwise it returns an empty string.
func (s *paramSet) adviseOnPyTorch(name string, o LoadOptions) string {
	switch last := name[strings.LastIndexByte(name, '.')+1:]; {
	case o.Tensors == nil && slices.Contains(pyTorchOnly, last):
		return fmt.Sprintf("; %.100q is a name from PyTorch: load the file with LoadOptions{Tensors: layers.PyTorch(params)}", name)
	case o.Tensors != nil && s.byName[name] != nil:
		return fmt.Sprintf("; %.100q is the model's own name: load the file without LoadOptions.Tensors", name)
	}
	return ""
}
