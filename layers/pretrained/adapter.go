package pretrained

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/layers"
)

const (
	adapterWeights = "adapter_model.safetensors"
	adapterPrefix  = "base_model.model." // of the names of an adapter's tensors
)

// untied says which layers an adapter can't have.
const untied = "layers other than the embeddings and the head, because they share their weights"

// classifier matches the names of the layers that peft trains whole in every adapter with the task_type of a head for
// classes, tags or answers.
var classifier = regexp.MustCompile(`^.*(classifier|score|qa_outputs)\b`)

// copyAdapter copies the keys of adapter_config.json that hold numbers.
func (k *keys) copyAdapter(low *layers.LowRank) {
	k.only("peft_type", "LORA", "bias", "none") // written, too
	k.copy("r", &low.Rank, "lora_alpha", &low.Alpha, "lora_dropout", &low.Dropout, "use_rslora", &low.RootScale)
}

// Joint returns the groups of layers whose weights the folder stores as one matrix, for layers.LowRank. An adapter for
// such a model needs them, because the library peft gives each matrix one A.
func (c Config) Joint() (groups [][]string) {
	a, _ := architectureOf(c.Type)
	for _, line := range a.names {
		scopes := strings.Fields(line)[0]
		if group := strings.Split(scopes[strings.LastIndexByte(scopes, '.')+1:], "+"); len(group) > 1 {
			groups = append(groups, group)
		}
	}
	return groups
}

// OpenAdapter opens an adapter that the library peft or SaveAdapter saved: adapter_config.json and
// adapter_model.safetensors in the root folder of fsys. The argument base has the parameters of the model that
// Config.Open makes for c.
//
// OpenAdapter returns an *UnsupportedError if a key of adapter_config.json can't be honoured. It also returns an error
// if a file is missing or malformed, or if the tensors don't fit adapter_config.json or the model. If the head has an
// adapter, peft also saves the base's weights of the head: OpenAdapter compares them with base, and returns an error if
// they differ by more than rounding to their dtype.
func (c Config) OpenAdapter(fsys fs.FS, base *layers.Params) (*layers.Adapter, error) {
	low := layers.LowRank{Rank: 8, Alpha: 8, Joint: c.Joint()}
	k := readKeys(fsys, adapter, false)
	k.copyAdapter(&low)
	targeted := k.targets()
	if v := k.get("init_lora_weights"); !slices.Contains([]string{"null", "true", "false", `"gaussian"`, `"orthogonal"`, `"eva"`}, show(v)) {
		k.fail(unsupported("init_lora_weights", v, "true, false, gaussian, orthogonal or eva, which leave the base's weights alone"))
	}
	if low.Alpha == 0 {
		k.fail(unsupported("lora_alpha", 0, "another number"))
	}
	h, _ := heads.Get(c.Head)
	if kind, _ := k.get("task_type").(string); slices.Contains([]string{"SEQ_CLS", "TOKEN_CLS", "QUESTION_ANS", "SEQ_2_SEQ_LM"}, kind) && kind != h.task {
		k.fail(unsupported("task_type", kind, fmt.Sprintf("an adapter for a model with the head %q, as its base has", c.Head)))
	}
	k.get("modules_to_save") // the file has their tensors
	if k.refuse(adapter); k.err != nil {
		return nil, k.done()
	}
	var compared []string
	header, err := safetensors.OpenFS(fsys, adapterWeights)
	if err == nil {
		header.Close()
		err = c.adapted(header.Entries, base, targeted, &low)
	}
	if err == nil {
		compared, err = c.sameBase(fsys, header.Entries, base)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", adapterWeights, err)
	}
	a, err := layers.NewAdapter(base, low, 0)
	if err != nil {
		return nil, err
	}
	table, err := c.adapterTensors(base, a)
	if err != nil {
		return nil, err
	}
	_, err = a.Params.LoadFS(fsys, []string{adapterWeights}, layers.LoadOptions{Tensors: table, Drop: func(name string) bool {
		return slices.Contains(compared, name) || c.Head == "states" && strings.Contains(name, "pooler.dense.lora_") // the states don't depend on it
	}})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// targets returns a function that reports whether target_modules names a published layer.
func (k *keys) targets() func(module string) bool {
	expression, ok := k.get("target_modules").(string)
	if !ok {
		var names []string
		k.copy("target_modules", &names)
		return func(module string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix("."+module, "."+name) })
		}
	}
	if expression == "all-linear" {
		return func(string) bool { return true }
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err == nil {
		if program, _ := syntax.Compile(tree.Simplify()); len(program.Inst) > 5000 { // such as (.?){1000}, which takes long
			err = errors.New("it is too large")
		}
	}
	var r *regexp.Regexp
	if err == nil {
		r, err = regexp.Compile("^(?:" + expression + ")$")
	}
	if err != nil {
		k.fail(unsupported("target_modules", expression, fmt.Sprintf("a list of names, all-linear, or an expression that Go's package regexp knows: %v", err)))
		return nil
	}
	return r.MatchString
}

// adapted sets the Targets and Whole of an adapter to the layers with tensors in its file.
func (c Config) adapted(entries []safetensors.Entry, base *layers.Params, targeted func(module string) bool, low *layers.LowRank) error {
	shapes := map[string][]int{}
	for _, e := range entries {
		shapes[e.Name] = e.Shape
	}
	tensors, err := c.tensors(base)
	if err != nil {
		return err
	}
	for _, t := range tensors {
		missing, before := "", len(low.Targets)+len(low.Whole)
		for _, name := range t.Names {
			if shapes[adapterPrefix+name] != nil {
				low.Whole = append(low.Whole, t.Params...)
			}
			module, weight := strings.CutSuffix(name, ".weight")
			wanted := weight && targeted(module)
			shape, ok := shapes[adapterPrefix+module+".lora_A.weight"]
			switch {
			case !weight || base.Get(t.Params[0]).Value.Dims() != 2:
			case !ok && wanted:
				missing = module
			case !ok:
			case !wanted:
				return fmt.Errorf("%s has no target_modules for the layer %.100q of the file", adapter, module)
			case !slices.Equal(shape, []int{low.Rank, base.Get(t.Params[0]).Value.Shape()[1]}): // before memory is spent
				return fmt.Errorf("lora_A of %.100q must have shape (r, %d) with the r %d of %s, got %v", module, base.Get(t.Params[0]).Value.Shape()[1], low.Rank, adapter, tensor.Shape(shape))
			default:
				for _, q := range t.Params {
					low.Targets = append(low.Targets, strings.TrimSuffix(q, ".weight"))
				}
			}
		}
		found := len(low.Targets)+len(low.Whole) > before
		switch q := t.Params[0]; {
		case found && isTied(q) && c.Model.Tied:
			return unsupported("target_modules or modules_to_save", t.Names[0], untied)
		case !found && missing != "" && strings.Contains(q, "blocks."):
			return fmt.Errorf("target_modules in %s names the layer %q, but the file has no tensors for it", adapter, missing)
		}
	}
	if len(low.Targets) == 0 {
		return fmt.Errorf("the file has no tensors for layers in target_modules of %s: open it with its own base", adapter)
	}
	return nil
}

// sameBase compares the base's weights in an adapter's file with the base, and returns their names in the file.
func (c Config) sameBase(fsys fs.FS, entries []safetensors.Entry, base *layers.Params) (names []string, err error) {
	roundings := map[string]float64{} // relative to a number
	for _, e := range entries {
		roundings[e.Name] = map[string]float64{"BF16": 1.0 / (1 << 8), "F16": 1.0 / (1 << 11), "F32": 1.0 / (1 << 24)}[e.Dtype]
	}
	tensors, err := c.tensors(base)
	if err != nil {
		return nil, err
	}
	theirs, err := layers.NewParams(base.Dtype(), 0)
	if err != nil {
		return nil, err
	}
	var table []layers.Tensor
	tensorOf := map[string]string{} // name in the file of each parameter
	for _, t := range tensors {
		for i, name := range t.Names {
			dot := max(strings.LastIndexByte(name, '.'), 0)
			t.Names[i] = adapterPrefix + name[:dot] + ".base_layer" + name[dot:]
		}
		i := slices.IndexFunc(t.Names, func(name string) bool { _, ok := roundings[name]; return ok })
		if i < 0 {
			continue
		}
		for _, q := range t.Params {
			if tensorOf[q] = t.Names[i]; err == nil {
				_, err = theirs.Blank().New(q, layers.Init{}, base.Get(q).Value.Shape()...)
			}
		}
		table, names = append(table, t), append(names, t.Names[i])
	}
	if err != nil || table == nil {
		return nil, err
	}
	if _, err := theirs.LoadFS(fsys, []string{adapterWeights}, layers.LoadOptions{Tensors: table, Ignore: true}); err != nil {
		return nil, err
	}
	for _, q := range theirs.All() {
		name, original := tensorOf[q.Name], base.Get(q.Name).Value
		for i := range original.Shape().TotalSize() {
			x, y := number(q.Value, i), number(original, i)
			if math.Abs(x-y) > roundings[name]*max(math.Abs(y), 1.0/(1<<14)) { // smaller numbers have fewer bits in F16
				return nil, fmt.Errorf("the tensor %.100q isn't the base's: number %d is %g, not %g: open the adapter with the base that it was trained on", name, i, x, y)
			}
		}
	}
	return names, nil
}

func number(t *tensor.Dense, i int) float64 {
	if t.Dtype() == tensor.Float32 {
		return float64(t.Float32s()[i])
	}
	return t.Float64s()[i]
}

// adapterTensors returns how an adapter's file holds its parameters.
func (c Config) adapterTensors(base *layers.Params, a *layers.Adapter) (table []layers.Tensor, err error) {
	if !slices.EqualFunc(a.Config.Joint, c.Joint(), slices.Equal) {
		return nil, fmt.Errorf("an adapter for folders of type %s must have the Joint %v, got %v: make it with the Joint of its base's Config", c.Type, c.Joint(), a.Config.Joint)
	}
	tensors, err := c.tensors(base)
	for _, t := range tensors {
		first, second, lasts, whole := layers.Tensor{}, layers.Tensor{Groups: t.Groups}, []string(nil), 0
		for _, q := range t.Params {
			scope := strings.TrimSuffix(q, ".weight")
			dot := strings.LastIndexByte(scope, '.')
			lasts = append(lasts, scope[dot+1:])
			first.Params = []string{scope[:dot+1] + strings.Join(lasts, "+") + ".lora_a"}
			if a.Params.Get(scope+".lora_b") != nil {
				second.Params = append(second.Params, scope+".lora_b")
			}
			if a.Params.Get(q) != nil {
				whole++
			}
		}
		switch n := len(t.Params); {
		case whole%n != 0 || len(second.Params)%n != 0:
			return nil, fmt.Errorf("folders of type %s hold %s in one tensor: name all of them in Targets, or all in Whole", c.Type, strings.Join(t.Params, ", "))
		case whole > 0 && isTied(t.Params[0]) && c.Model.Tied:
			return nil, unsupported("modules_to_save", t.Names[0], untied)
		}
		for i, name := range t.Names {
			t.Names[i] = adapterPrefix + name
			if module, ok := strings.CutSuffix(t.Names[i], ".weight"); ok {
				first.Names, second.Names = append(first.Names, module+".lora_A.weight"), append(second.Names, module+".lora_B.weight")
			}
		}
		if whole > 0 {
			table = append(table, t)
		} else if second.Params != nil {
			table = append(table, first, second)
		}
	}
	return table, err
}

// SaveAdapter saves an adapter to a folder that the library peft opens: adapter_config.json and
// adapter_model.safetensors. It makes the folder if there is none. The argument base has the parameters of the model
// that Config.Open makes for c, the adapter must have been made for them with the Joint of c, and name says where the
// base is. SaveAdapter returns an error if the architecture lacks a setting of the model, as Save does, if a parameter
// can't be in such a folder, or if writing fails.
func (c Config) SaveAdapter(dir, name string, base *layers.Params, a *layers.Adapter) error {
	if c.Classifier != nil {
		c.Model = c.Classifier.Model
	}
	if _, err := c.write(base.Dtype()); err != nil { // another library would compute something else
		return err
	}
	table, err := c.adapterTensors(base, a)
	if err != nil {
		return err
	}
	h, _ := heads.Get(c.Head)
	kind := h.task
	if tensors, _ := c.tensors(base); slices.ContainsFunc(tensors, func(t layers.Tensor) bool {
		return classifier.MatchString(t.Names[0]) && a.Params.Get(t.Params[0]) == nil
	}) {
		kind = "" // the file lacks a part of the head
	}
	k, low := newKeys(), a.Config
	k.copyAdapter(&low)
	var targets, whole []string
	for _, t := range table {
		name := strings.TrimPrefix(t.Names[0], adapterPrefix)
		if module, part, ok := strings.Cut(name, ".lora_"); part == "A.weight" {
			targets = append(targets, module)
		} else if part := classifier.FindString(name); !ok && part != "" && kind != "" {
			whole = append(whole, part)
		} else if !ok {
			whole = append(whole, name[:strings.LastIndexByte(name, '.')])
		}
	}
	architecture, _ := architectureOf(c.Type)
	transposed := slices.ContainsFunc(architecture.names, func(line string) bool { return strings.HasSuffix(line, " transposed") })
	k.values["target_modules"], k.values["fan_in_fan_out"] = targets, transposed
	k.values["base_model_name_or_path"], k.values["inference_mode"], k.values["init_lora_weights"] = name, true, true
	if whole = slices.Compact(whole); whole != nil {
		k.values["modules_to_save"] = whole
	}
	if kind != "" {
		k.values["task_type"] = kind
	}
	if err := k.writeFile(filepath.Join(dir, adapter)); err != nil {
		return err
	}
	return a.Params.SaveTensors(filepath.Join(dir, adapterWeights), table, map[string]string{"format": "pt"})
}
