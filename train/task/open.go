package task

import (
	"fmt"
	"io/fs"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/layers"
)

// ReadConfig reads and checks a run folder's config.json. It takes the functions of the rule from the given rule of the
// same name, or from Heed's own. If there is none, the functions are nil.
func ReadConfig(dir string, rules ...data.Rule) (Config, error) {
	return ReadConfigBase(dir, "", rules...)
}

// ReadConfigBase is like ReadConfig for a folder that OpenBase opens. The configuration's From is then base.
func ReadConfigBase(dir, base string, rules ...data.Rule) (Config, error) {
	s, err := startOf(runfolder.At(dir), base, "")
	if err != nil {
		return Config{}, err
	}
	return s.config(rules)
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
// reads the folder that the run began from, at the path in its configuration, and compares its checksum. OpenBase is
// for another path. The same holds for an adapter for a published model, in the files of the library peft.
func Open(dir string, rules ...data.Rule) (*Model, error) { return open(runfolder.At(dir), "", rules) }

// OpenBase is like Open for a run that trained only a part of its parameters, or an adapter. The folder base has the
// model that they began from.
func OpenBase(dir, base string, rules ...data.Rule) (*Model, error) {
	return open(runfolder.At(dir), base, rules)
}

// OpenFS is like Open for a folder that is the root of a file system, such as an embed.FS.
func OpenFS(fsys fs.FS, rules ...data.Rule) (*Model, error) {
	return open(runfolder.Folder{FS: fsys, Dir: "."}, "", rules)
}

func open(f runfolder.Folder, base string, rules []data.Rule) (*Model, error) {
	m, err := openUnmerged(f, base, rules)
	if err == nil && m.adapter != nil {
		err = m.adapter.Merge(m.Params)
		m.adapter = nil
	}
	return m, err
}

// openUnmerged is open for a model that keeps its adapter, if it has one.
func openUnmerged(f runfolder.Folder, base string, rules []data.Rule) (*Model, error) {
	s, err := startOf(f, base, "")
	if err != nil {
		return nil, err
	}
	c, err := s.config(rules)
	if err != nil {
		return nil, err
	}
	if k := c.Kind(); c.published() && (k.Generates || k.Masks) { // training read shorter windows
		c.Task.MaxLen = c.Task.Published.MaxLen
	}
	wrong := func(err error) error { return fmt.Errorf("%s: %w", f.Path(runfolder.ConfigFile), err) }
	m, err := newModel(c)
	if err != nil {
		return nil, wrong(err)
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
		m.Params = m.Params.Blank()
		err = m.build()
	}
	if err != nil {
		return nil, wrong(err)
	}
	if run, ok := s.(runStart); ok && c.partial() {
		loaded, err := m.loadFrom()
		if err == nil {
			err = m.tune(loaded.Kept)
		}
		if err != nil {
			return nil, run.baseError(err)
		}
	}
	return m, m.read(s)
}

// Load sets the parameters to the weights of a run folder. If the folder has no weights, the error wraps ErrNoWeights.
// Load also returns an error if the weights don't match the folder's config.json or, in a finished run, its
// summary.json. After an error, all parameters have their old values.
func (m *Model) Load(dir string) error {
	s, err := startOf(runfolder.At(dir), "", "")
	if err == nil {
		err = m.read(s)
	}
	return err
}

// read reads the weights of a start, and what else the model needs.
func (m *Model) read(s start) error {
	loaded, err := s.load(m.trained(), nil)
	if err == nil {
		err = s.complete(m, loaded.Metadata)
	}
	return err
}
