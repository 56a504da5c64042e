package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/heed-go/heed/data"
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

// ReadConfig reads and checks a run folder's config.json, except for the settings of training, which it returns as
// JSON; they are empty for a published model. It takes the functions of the rule from the given rule of the same name,
// or from Heed's own. If there is none, the functions are nil. The folder is one that OpenBase opens: if base isn't
// empty, the configuration's From is then base.
//
// If kind isn't empty, the configuration is for a task of this kind that begins from the folder. For a published model,
// it then has the Archive, and its From.LowRank has the Joint of an adapter.
func ReadConfig(dir, base string, kind data.Kind, rules ...data.Rule) (c Config, training []byte, err error) {
	s, err := startOf(runfolder.At(dir), base, kind)
	if err != nil {
		return c, nil, err
	}
	if run, ok := s.(runStart); ok {
		training = run.training
	}
	if c, err = s.config(rules); err != nil || kind == "" {
		return c, training, err
	}
	if published, ok := s.(interface{ archive() ([]byte, error) }); ok {
		c.Archive, err = published.archive()
	}
	if err == nil && c.Published() {
		var model publishedStart
		model, err = openArchive(c.Archive, kind)
		c.From.LowRank.Joint = model.model.Joint()
	}
	return c, training, err
}
