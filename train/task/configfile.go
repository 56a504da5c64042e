package task

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train/model"
)

// ReadConfig reads and checks a run folder's config.json. It takes the functions of the rule from the given rule of the
// same name, or from Heed's own. If there is none, the functions are nil.
func ReadConfig(dir string, rules ...data.Rule) (Config, error) {
	return ReadConfigBase(dir, "", rules...)
}

// ReadConfigBase is like ReadConfig for a folder that model.OpenBase opens. If base isn't empty, the configuration's
// From is then base.
func ReadConfigBase(dir, base string, rules ...data.Rule) (Config, error) {
	c, training, failed := model.ReadConfig(dir, base, "", rules...)
	if failed == nil && c.Opened() {
		return Config{c, Defaults(data.Rule{Kind: data.KindText}).Training}, nil
	}
	var settings struct {
		Training Training `json:"training"`
	}
	err := choices.Readable(choices.Decode([]byte(`{"training": `+cmp.Or(string(training), "{}")+"}"), &settings))
	whole := Config{c, settings.Training}
	if err == nil && failed == nil {
		err = whole.check(kindOf(whole.Task.Kind), true)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", runfolder.At(dir).Path(runfolder.ConfigFile), err)
	}
	if err = cmp.Or(err, failed); err != nil {
		return Config{}, err
	}
	return whole, nil
}

// configBytes returns the content of config.json for a configuration. It returns an error if the content would be too
// large to be read.
func configBytes(c Config) ([]byte, error) {
	content, err := json.MarshalIndent(struct {
		Config
		SHA256 string `json:"sha256"` // see runfolder.Seal
	}{c, runfolder.Unsealed}, "", "  ")
	if err == nil && len(content)+1 >= runfolder.MaxConfig {
		err = fmt.Errorf("its file would have %d bytes, but at most %d are read: its task has too many symbols, classes or words", len(content)+1, runfolder.MaxConfig)
	}
	if err != nil {
		return nil, fmt.Errorf("the configuration can't be saved: %w", err)
	}
	content = append(content, '\n')
	runfolder.Seal(content)
	return content, nil
}

// id returns a name for the settings that determine a run's result: see model.RunID.
func (c Config) id() string {
	training, _ := json.Marshal(c.Training) // has been saved
	return model.RunID(c.Config, training)
}

// raisedTo returns an error if MaxEpochs or Patience is lower in the other Config; 0 means no limit.
func (c Config) raisedTo(other Config) error {
	for _, n := range []struct {
		name     setting.Path
		old, new int
	}{
		{"training.max_epochs", c.Training.MaxEpochs, other.Training.MaxEpochs},
		{"training.stopping.patience", c.Training.Stopping.Patience, other.Training.Stopping.Patience},
	} {
		if n.new != 0 && (n.old == 0 || n.new < n.old) {
			was := fmt.Sprint(n.old)
			if n.old == 0 {
				was = "0, which means no limit"
			}
			return setting.Errorf("%s may be raised when a run is resumed, but not lowered: it was %s, got %d", n.name, was, n.new)
		}
	}
	return nil
}
