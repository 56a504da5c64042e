package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
)

// A start is a folder that a model begins from. Open and Config.StartFrom ask it for the configuration of the model,
// and then for its weights.
type start interface {
	// config returns the checked configuration, with the functions of its rule: see ReadConfig.
	config(rules []data.Rule) (Config, error)

	// values returns the number of values in the weights.
	values() (int, error)

	// sum returns a checksum of the weights.
	sum() (string, error)

	// load sets the parameters to the weights. If drop isn't nil, load skips the weights for which drop returns true,
	// and parameters without weights keep their values. After an error, all parameters have their old values, or those
	// of an adapter's base.
	load(p *layers.Params, drop func(name string, shape []int) bool) (layers.LoadReport, error)

	// complete sets what else the model needs to answer. The argument metadata is that of the weights.
	complete(m *Model, metadata map[string]string) error
}

// startOf finds out what a folder holds. A run has a config.json with a "format". A published model has a config.json
// with a "model_type", or a modules.json. An adapter has an adapter_config.json. If kind isn't empty, the start is for
// a task of this kind. If base isn't empty, the folder must lack weights of its model, and base has them.
func startOf(f runfolder.Folder, base string, kind data.Kind) (start, error) {
	whole := func(s start, err error) (start, error) {
		if err == nil && base != "" {
			err = fmt.Errorf("%s has all weights of its model: leave out the base %s", f.Dir, base)
		}
		return s, err
	}
	content, err := f.Read(runfolder.ConfigFile, runfolder.MaxConfig)
	if errors.Is(err, fs.ErrNotExist) && f.Has(modulesFile) {
		return whole(openPublished(f, kind))
	}
	var keys struct {
		Format    any `json:"format"`
		ModelType any `json:"model_type"`
	}
	var invalid error // JSON, which parseConfig reports
	if err == nil {
		invalid = json.Unmarshal(content, &keys)
	}
	switch {
	case keys.Format == nil && keys.ModelType != nil:
		return whole(openPublished(f, kind))
	case keys.Format == nil && f.Has(adapterFile):
		return openAdapter(f, base, kind)
	case errors.Is(err, fs.ErrNotExist):
		return nil, noModel(f)
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("%s isn't a folder, but %s: give the folder of a model, which has a %s", f.Dir, fileKind(f.Dir), runfolder.ConfigFile)
	case err != nil:
		return nil, fmt.Errorf("%s can't be read as a run folder: %s: %w", f.Dir, f.Path(runfolder.ConfigFile), err)
	case invalid == nil && keys.Format == nil:
		return nil, fmt.Errorf("%s isn't a run folder: %s has no \"format\"; heed train makes one", f.Dir, f.Path(runfolder.ConfigFile))
	}
	saved, training, err := parseConfig(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(runfolder.ConfigFile), err)
	}
	saved.From = saved.From.found(f.Dir)
	if !saved.needsBase() {
		return whole(runStart{f, saved, training, kind}, nil)
	}
	if base != "" {
		saved.From.Dir, saved.From.Absolute.Dir = base, absolute(base)
	}
	return runStart{f, saved, training, kind}, nil
}

// noModel returns the error that a folder has no model.
func noModel(f runfolder.Folder) error {
	if _, damaged := f.HasRun(); damaged != nil {
		return damaged
	}
	if _, err := fs.Stat(f.FS, "."); errors.Is(err, fs.ErrNotExist) {
		var names []string
		dir := filepath.Clean(f.Dir)
		neighbours, _ := os.ReadDir(filepath.Dir(dir)) // without them, the error names none
		for _, n := range neighbours {
			if n.IsDir() {
				names = append(names, filepath.Join(filepath.Dir(dir), n.Name()))
			}
		}
		return fmt.Errorf("%s: there is no such folder%s", f.Dir, text.DidYouMean(dir, names))
	}
	if files, err := fs.Glob(f.FS, "*.gguf"); err == nil && len(files) > 0 {
		return fmt.Errorf("%s has a model as GGUF, %s, which Heed doesn't read: give a folder with the same model as *.safetensors and %s", f.Dir, text.Shorten(files[0], 80, 20), runfolder.ConfigFile)
	}
	return fmt.Errorf("%s isn't a run folder: it has no %s; heed train makes one, and published models have one", f.Dir, runfolder.ConfigFile)
}

// fileKind says what a file is, in words.
func fileKind(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return "a file"
	}
	defer file.Close()
	start := make([]byte, 4)
	if _, err := io.ReadFull(file, start); err == nil && string(start) == "GGUF" {
		return "a file with a model as GGUF, which Heed doesn't read"
	}
	return "a file"
}

// A runStart is a run folder.
type runStart struct {
	runfolder.Folder
	saved    Config          // unchecked
	training json.RawMessage // unchecked; see config.json
	kind     data.Kind       // of the task that begins from the run; empty for the run itself
}

func (s runStart) config(rules []data.Rule) (Config, error) {
	c := s.saved
	err := c.Check(true)
	if err == nil {
		err = c.readTokenizers(s.Folder)
	}
	if err == nil {
		_, err = data.NewCoder(c.Task)
	}
	if err == nil {
		err = c.complete(rules)
	}
	if err == nil && c.Published() && s.kind != "" && s.kind != c.Task.Kind {
		var model publishedStart
		if model, err = openArchive(c.Archive, s.kind); err == nil {
			c.Model, c.Head = model.model.Model, model.head()
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: restore it", err)
	}
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", s.Path(runfolder.ConfigFile), err)
	}
	return c, nil
}

func (s runStart) id() string { return RunID(s.saved, s.training) }

func (s runStart) values() (n int, err error) {
	if s.saved.Partial() { // the base has the others
		base, err := startOf(runfolder.At(s.saved.From.Dir), s.saved.From.Base, s.saved.Task.Kind)
		if run, ok := base.(runStart); ok && run.saved.Partial() && err == nil { // with the right sums, there is no cycle of bases
			if sum, failed := base.sum(); failed != nil || sum != s.saved.From.SHA256 {
				err = cmp.Or(failed, errChanged)
			}
		}
		if err == nil {
			n, err = base.values()
		}
		if err != nil {
			return 0, s.baseError(err)
		}
	}
	header, err := s.Header()
	if err != nil {
		return 0, err
	}
	for _, e := range header.Entries {
		n += memory.Product(e.Shape...)
	}
	return n, nil
}

func (s runStart) sum() (string, error) {
	if !s.Has(runfolder.WeightsFile) {
		_, err := s.Header() // which says why there are none
		return "", err
	}
	sum, err := s.Sum(runfolder.WeightsFile)
	if s.saved.Partial() {
		sum = runfolder.JSONSum([]string{sum, s.saved.From.SHA256})
	}
	return sum, err
}

// complete sets the mixture and the baseline. There may be no baseline if the model doesn't need it.
func (s runStart) complete(m *Model, metadata map[string]string) (err error) {
	m.mixture, err = readMixture(metadata)
	if err == nil {
		err = m.CompletePublished()
	}
	if err != nil {
		return err
	}
	m.linear, err = s.saved.ReadLinear(s.Folder, s.id())
	switch {
	case errors.Is(err, fs.ErrNotExist) && m.mixture.Linear > 0:
		return s.Missing(runfolder.BaselineFile, runfolder.WeightsFile)
	case errors.Is(err, fs.ErrNotExist):
		m.noLinear = s.Lacks(runfolder.BaselineFile)
		return nil
	case err != nil || m.linear.Width() == 0:
		return err
	}
	if m.linear.Begun, err = m.Begun(); err != nil {
		return s.baseError(err)
	}
	return nil
}

func (s runStart) load(p *layers.Params, drop func(name string, shape []int) bool) (l layers.LoadReport, err error) {
	header, err := s.CheckedHeader(s.id())
	if err != nil {
		return l, err
	}
	var o layers.LoadOptions
	if drop != nil && s.saved.Partial() {
		return s.copy(p, drop)
	}
	if drop != nil {
		names := map[string]string{} // of our parameters, by their names in the file
		for _, e := range header.Entries {
			if name := nameIn(p, e.Name); !drop(name, e.Shape) {
				names[e.Name] = name
				o.Tensors = append(o.Tensors, layers.Tensor{Names: []string{e.Name}, Params: []string{name}})
			}
		}
		o.Partial, o.Ignore, o.Drop = true, true, func(name string) bool { return names[name] == "" }
	}
	l, err = p.LoadFS(s.FS, []string{runfolder.WeightsFile}, o)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.Dir, err)
	}
	return l, err
}

// baseError explains an error about the folder that the run began from.
func (s runStart) baseError(err error) error {
	return fmt.Errorf("%s needs the model that it began from: %w; if that model has moved, say where it is with --base, or in Go with model.OpenBase", s.Dir, err)
}

// copy is load for a run whose file lacks the weights that it didn't train.
func (s runStart) copy(p *layers.Params, drop func(name string, shape []int) bool) (l layers.LoadReport, err error) {
	m, err := open(s.Folder, s.saved.From.Dir, Float32Weights, nil)
	if err != nil {
		return l, err
	}
	loaded := map[string]bool{}
	for _, q := range m.Params.All() {
		name := nameIn(p, q.Name)
		if drop(name, q.Value.Shape()) {
			l.Unused = append(l.Unused, q.Name)
		} else if loaded[name] = true; err == nil {
			err = tensor.Copy(p.Get(name).Value, q.Value)
		}
	}
	for _, q := range p.All() {
		if !loaded[q.Name] {
			l.Kept = append(l.Kept, q.Name)
		}
	}
	return l, err
}

// nameIn returns the name in p of a parameter of another model. Models with one answer per text have a scope encoder,
// which others with the same blocks lack.
func nameIn(p *layers.Params, name string) string {
	const scope = "encoder."
	if p.Get(name) == nil && p.Get(scope+name) != nil {
		return scope + name
	}
	if without := strings.TrimPrefix(name, scope); p.Get(name) == nil && p.Get(without) != nil {
		return without
	}
	return name
}

var errChanged = errors.New("its weights have changed since this run began: restore them")

// Errors about models that can't be opened.
var (
	ErrNoWeights = runfolder.ErrNoWeights // no weights: the run ended before the end of its first epoch
	ErrFrom      = errors.New("can't start from")
)

// Files of an adapter that the library peft saved.
const (
	adapterFile    = "adapter_config.json"
	adapterWeights = "adapter_model.safetensors"
)

// An adapterStart is a published model, the base, with an adapter.
type adapterStart struct {
	publishedStart
	adapter runfolder.Folder
}

// openAdapter opens the folder of an adapter for models of a kind: see startOf. If base is empty, adapter_config.json
// must name a folder.
func openAdapter(f runfolder.Folder, base string, kind data.Kind) (start, error) {
	if base == "" {
		var keys struct {
			Base string `json:"base_model_name_or_path"`
		}
		content, err := f.Read(adapterFile, runfolder.MaxConfig)
		if err == nil {
			err = json.Unmarshal(content, &keys)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path(adapterFile), err)
		}
		base = find(keys.Base, "", f.Dir)
		if info, err := os.Stat(base); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s has an adapter for the model %.200q, which isn't a folder here: say where that model is with --base, or in Go with model.OpenBase", f.Dir, keys.Base)
		}
	}
	s, err := openPublished(runfolder.At(base), kind) // not startOf, which would follow an adapter that is its own base
	if err != nil {
		return nil, fmt.Errorf("%s has an adapter for a published model, and that can't be opened: %w", f.Dir, err)
	}
	return adapterStart{s, f}, nil
}

func (s adapterStart) sum() (string, error) {
	base, err := s.publishedStart.sum()
	settings, failed := s.adapter.Sum(adapterFile)
	weights, missing := s.adapter.Sum(adapterWeights)
	return runfolder.JSONSum([]string{base, settings, weights}), errors.Join(err, failed, missing)
}

func (s adapterStart) load(p *layers.Params, drop func(name string, shape []int) bool) (l layers.LoadReport, err error) {
	if l, err = s.publishedStart.load(p, drop); err != nil {
		return l, err
	}
	a, err := s.model.OpenAdapter(s.adapter.FS, p) // compares its weights of the base with p
	if err != nil {
		return l, fmt.Errorf("%s: %w", s.adapter.Dir, err)
	}
	return l, a.Merge(p)
}

// ReadConfig reads and checks a run folder's config.json, except for the settings of training, which it returns as
// JSON; they are empty for a published model. It takes the functions of the rule from the given rule of the same name,
// or from Heed's own. If there is none, the functions are nil. The folder is one that OpenBase opens: if base isn't
// empty, the configuration's From is then base.
func ReadConfig(dir, base string, rules ...data.Rule) (c Config, training []byte, err error) {
	s, err := startOf(runfolder.At(dir), base, "")
	if err != nil {
		return c, nil, err
	}
	if run, ok := s.(runStart); ok {
		training = run.training
	}
	c, err = s.config(rules)
	return c, training, err
}

// Begin returns the configuration of the model in a folder, for a task of another kind that begins from it.
func Begin(dir, base string, kind data.Kind) (Config, error) {
	s, err := startOf(runfolder.At(dir), base, kind)
	if err != nil {
		return Config{}, err
	}
	c, err := s.config(nil)
	if published, ok := s.(interface{ archive() ([]byte, error) }); ok && err == nil {
		c.Archive, err = published.archive()
	}
	return c, err
}

// Open returns the trained model of a run folder. If the model learned your own rule, pass that rule. Without it, the
// model answers too, but the rule's Answer can't check inputs; and if the rule had a Spell or a Read, Open returns an
// error. Open compares the learned rule with the given rule of the same name, or with Heed's own. It returns an error
// if their data differ, or if only one of them has a Spell or a Read. It can't compare functions.
//
// The folder may come from someone else: Open checks config.json and the sizes of the weights before it allocates
// memory for the model. Tokenizers must be as tokenizer.ReadOwn expects them.
//
// Open also opens the folder of a published model: package pretrained says which. The model generates text or
// classifies texts, as its head does, and otherwise embeds texts.
//
// If a run trained only a part of its parameters, such as a low-rank adapter, its folder has only those. Open then also
// reads the folder that the run began from, and compares its checksum. A relative path in the configuration begins in
// the current folder or, if that has no such folder, where it began in training, or in the run's folder or one above
// it. OpenBase is for another path. The same holds for an adapter for a published model, in the files of the library
// peft.
func Open(dir string, rules ...data.Rule) (*Model, error) {
	return open(runfolder.At(dir), "", Float32Weights, rules)
}

// OpenBase is like Open for a run that trained only a part of its parameters, or an adapter. The folder base has the
// model that they began from.
func OpenBase(dir, base string, rules ...data.Rule) (*Model, error) {
	return open(runfolder.At(dir), base, Float32Weights, rules)
}

// OpenAs is like OpenBase, and keeps the weights as the argument kept says: Float32Weights or Int8Weights. With
// Int8Weights, the model takes about a quarter of the memory. With AVX-512 or AVX2, a token of generated text also
// takes less time: see layers.Params.Quantize. Such a model answers, but can't be trained, saved, exported or
// explained. If base is empty, OpenAs is like Open.
func OpenAs(dir, base, kept string, rules ...data.Rule) (*Model, error) {
	return open(runfolder.At(dir), base, kept, rules)
}

// OpenFS is like Open for a folder that is the root of a file system, such as an embed.FS.
func OpenFS(fsys fs.FS, rules ...data.Rule) (*Model, error) {
	return open(runfolder.Folder{FS: fsys, Dir: "."}, "", Float32Weights, rules)
}

func open(f runfolder.Folder, base, kept string, rules []data.Rule) (*Model, error) {
	if err := KnownWeights(kept); err != nil {
		return nil, err
	}
	quantize := kept == Int8Weights
	m, err := openUnmerged(f, base, quantize, rules)
	if err == nil && m.adapter != nil {
		err = m.adapter.Merge(m.Params)
		m.adapter = nil
	}
	if err == nil && quantize {
		err = m.Params.Quantize()
		debug.FreeOSMemory() // the float32 weights
	}
	return m, err
}

// openUnmerged is open for a model that keeps its adapter, if it has one. With quantize, loading makes the weights
// int8, unless something will be merged with them.
func openUnmerged(f runfolder.Folder, base string, quantize bool, rules []data.Rule) (*Model, error) {
	s, err := startOf(f, base, "")
	if err != nil {
		return nil, err
	}
	c, err := s.config(rules)
	if err != nil {
		return nil, err
	}
	if k := c.Kind(); c.Published() && (k.Generates || k.Masks) { // training read shorter windows
		c.Task.MaxLen = c.Task.Published.MaxLen
	}
	wrong := func(err error) error { return fmt.Errorf("%s: %w", f.Path(runfolder.ConfigFile), err) }
	m, err := newModel(c)
	if err != nil {
		return nil, wrong(err)
	}
	_, merges := s.(adapterStart)
	m.int8 = quantize && !merges && !c.Partial()
	if p, ok := s.(publishedStart); ok {
		p.int8 = m.int8
		s = p
	}
	values, err := s.values()
	if err != nil {
		return nil, err
	}
	// Compare sizes before allocating memory. Loading compares the shapes.
	if least := m.Config.leastParams(m.layout); least > float64(values) {
		return nil, wrong(fmt.Errorf("the model has at least %.3g parameters, which take %.3g GiB, but %s has only %d values",
			least, 4*least/(1<<30), runfolder.WeightsFile, values))
	}
	if m.Params, err = layers.NewParams(tensor.Float32, c.Seed); err == nil {
		if m.int8 {
			m.Params = m.Params.BlankInt8()
		} else {
			m.Params = m.Params.Blank()
		}
		err = m.build()
	}
	if err != nil {
		return nil, wrong(err)
	}
	if run, ok := s.(runStart); ok && c.Partial() {
		loaded, err := m.LoadFrom()
		if err == nil {
			err = m.Tune(loaded.Kept)
		}
		if err != nil {
			return nil, run.baseError(err)
		}
	}
	return m, m.readStart(s)
}

// Load sets the parameters to the weights of a run folder. If the folder has no weights, the error wraps ErrNoWeights.
// Load also returns an error if the weights don't match the folder's config.json or, in a finished run, its
// summary.json. After an error, all parameters have their old values; if an adapter doesn't fit, those of its base.
func (m *Model) Load(dir string) error {
	s, err := startOf(runfolder.At(dir), "", "")
	if err == nil {
		err = m.readStart(s)
	}
	return err
}

// readStart reads the weights of a start, and what else the model needs.
func (m *Model) readStart(s start) error {
	loaded, err := s.load(m.Trained(), nil)
	if err == nil {
		err = s.complete(m, loaded.Metadata)
	}
	return err
}

// absolute returns the absolute path of a relative one, and otherwise "".
func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil && path != "" && !filepath.IsAbs(path) {
		return whole
	}
	return ""
}

// found returns f with the paths of folders, as seen by the run or adapter in a folder: see find.
func (f From) found(folder string) From {
	f.Dir, f.Base = find(f.Dir, f.Absolute.Dir, folder), find(f.Base, f.Absolute.Base, folder)
	return f
}

// find returns the path of the folder that another folder names by a path, and perhaps by its absolute path. A relative
// path begins in the current folder or, if that has no such folder, in the other folder or in one above it. At last,
// the two folders may lie side by side. If no such folder exists, find returns path.
func find(path, absolute, other string) string {
	places := []string{path, absolute}
	if other, err := filepath.Abs(other); err == nil {
		for up := other; !filepath.IsAbs(path); up = filepath.Dir(up) {
			places = append(places, filepath.Join(up, path))
			if up == filepath.Dir(up) {
				break
			}
		}
		places = append(places, filepath.Join(filepath.Dir(other), filepath.Base(path)))
	}
	for _, place := range places {
		if info, err := os.Stat(place); path != "" && err == nil && info.IsDir() {
			return place
		}
	}
	return path
}

// LoadFrom loads the weights of the configuration's From, as far as they fit. It sets the From's checksum, or compares
// it if it is already set.
func (m *Model) LoadFrom() (layers.LoadReport, error) {
	loaded, err := m.loadFit()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoWeights) {
		err = fmt.Errorf("it %w", ErrNoWeights)
	}
	if err != nil {
		err = fmt.Errorf("%w %s: %w", ErrFrom, m.Config.From.Dir, err)
	}
	return loaded, err
}

func (m *Model) loadFit() (loaded layers.LoadReport, err error) {
	c := &m.Config
	s, err := startOf(runfolder.At(c.From.Dir), c.From.Base, c.Task.Kind)
	if err != nil {
		return loaded, err
	}
	from, err := s.config(nil)
	if err != nil {
		return loaded, err
	}
	sum, err := s.sum()
	if err != nil {
		return loaded, err
	}
	if c.From.SHA256 != "" && c.From.SHA256 != sum {
		return loaded, errChanged
	}
	if c.From.SHA256 == "" {
		c.From.Absolute.Dir, c.From.Absolute.Base = absolute(c.From.Dir), absolute(c.From.Base)
	}
	c.From.SHA256 = sum
	// With other symbols, an embedding or a head doesn't fit, even if its shape is the same.
	mine, theirs := c.Data.Tokenizers, from.Data.Tokenizers
	sources := c.Published() || c.Task.Alphabet == from.Task.Alphabet && slices.Equal(mine[:min(1, len(mine))], theirs[:min(1, len(theirs))])
	targets := sources && (from.Opened() || slices.Equal(mine, theirs)) && c.Task.Kind == from.Task.Kind && slices.Equal(c.Task.Classes, from.Task.Classes)
	loaded, err = s.load(m.Params, func(name string, shape []int) bool {
		p := m.Params.Get(name)
		ofTarget := strings.Contains("."+name, ".head.") || strings.HasPrefix(name, "decoder.embedding.")
		ofSource := strings.Contains("."+name, ".embedding.") && !ofTarget
		return p == nil || !slices.Equal(p.Value.Shape(), shape) || ofTarget && !targets || ofSource && !sources
	})
	if err == nil && len(loaded.Kept) == len(m.Params.All()) {
		err = errors.New("none of its weights fit this model")
	}
	return loaded, err
}
