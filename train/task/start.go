package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
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
	// and parameters without weights keep their values. After an error, all parameters have their old values.
	load(p *layers.Params, drop func(name string, shape []int) bool) (layers.LoadReport, error)

	// complete sets what else the model needs to answer. The argument metadata is that of the weights.
	complete(m *Model, metadata map[string]string) error
}

// Files by which folders without a config.json are known: an adapter, and a published model in a folder of its own.
const (
	adapterFile = "adapter_config.json"
	modulesFile = "modules.json"
)

// startOf finds out what a folder holds. A run has a config.json with a "format". A published model has a config.json
// with a "model_type", or a modules.json. An adapter has an adapter_config.json.
func startOf(f runfolder.Folder) (start, error) {
	content, err := f.Read(runfolder.ConfigFile, runfolder.MaxConfig)
	if errors.Is(err, fs.ErrNotExist) && f.Has(modulesFile) {
		return openPublished(f)
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
		return openPublished(f)
	case keys.Format == nil && f.Has(adapterFile):
		return nil, fmt.Errorf("%s has an adapter, not a model: heed can't open adapters yet", f.Dir)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s isn't a run folder: it has no %s; heed train makes one", f.Dir, runfolder.ConfigFile)
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("%s isn't a run folder, but a file: give the folder that heed train made", f.Dir)
	case err != nil:
		return nil, fmt.Errorf("%s can't be read as a run folder: %s: %w", f.Dir, f.Path(runfolder.ConfigFile), err)
	case invalid == nil && keys.Format == nil:
		return nil, fmt.Errorf("%s isn't a run folder: %s has no \"format\"; heed train makes one", f.Dir, f.Path(runfolder.ConfigFile))
	}
	saved, err := parseConfig(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(runfolder.ConfigFile), err)
	}
	return runStart{f, saved}, nil
}

// A runStart is a run folder.
type runStart struct {
	runfolder.Folder
	saved Config // unchecked
}

func (s runStart) config(rules []data.Rule) (Config, error) {
	c := s.saved
	err := c.check(true)
	if err == nil {
		err = c.readTokenizers(s.Folder)
	}
	if err == nil {
		_, err = data.NewCoder(c.Task)
	}
	if err == nil {
		err = c.complete(rules)
	}
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", s.Path(runfolder.ConfigFile), err)
	}
	return c, nil
}

func (s runStart) values() (n int, err error) {
	header, err := s.Header()
	if err != nil {
		return 0, err
	}
	for _, e := range header.Entries {
		n += memory.Product(e.Shape...)
	}
	return n, nil
}

func (s runStart) sum() (string, error) { return s.Sum(runfolder.WeightsFile) }

// complete sets the temperature and the baseline. There may be no baseline if the model doesn't need it.
func (s runStart) complete(m *Model, metadata map[string]string) error {
	err := m.readTemperature(metadata)
	if err == nil {
		m.baseline, err = s.saved.openBaseline(s.Folder, false)
	}
	if errors.Is(err, fs.ErrNotExist) && !s.saved.Wide {
		err = nil
	}
	return err
}

func (s runStart) load(p *layers.Params, drop func(name string, shape []int) bool) (l layers.LoadReport, err error) {
	header, err := s.CheckedHeader(s.saved.id())
	if err != nil {
		return l, err
	}
	var o layers.LoadOptions
	if drop != nil {
		shapes := map[string][]int{}
		for _, e := range header.Entries {
			shapes[e.Name] = e.Shape
		}
		o = layers.LoadOptions{Partial: true, Ignore: true, Drop: func(name string) bool { return drop(name, shapes[name]) }}
	}
	l, err = p.LoadFS(s.FS, []string{runfolder.WeightsFile}, o)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.Dir, err)
	}
	return l, err
}

func openPublished(f runfolder.Folder) (start, error) {
	c, err := pretrained.ReadConfig(f.FS)
	if err == nil {
		c, err = c.Untied(f.FS)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Dir, err)
	}
	if c.Head == "mask" { // embeds texts, too
		c = c.States()
	}
	for _, id := range []*int{&c.Start, &c.Pad} { // small models often have the default ids of large ones
		if *id >= c.Model.Vocab {
			*id = -1
		}
	}
	return publishedStart{Folder: f, model: c}, nil
}
