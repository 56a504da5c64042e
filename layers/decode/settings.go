package decode

// SamplerSettings are the settings of a Sampler that flags or a request give; nil stands for one that they leave out.
type SamplerSettings struct {
	Temperature       *float64 `json:"temperature"`
	TopK              *int     `json:"top_k"`
	TopP              *float64 `json:"top_p"`
	MinP              *float64 `json:"min_p"`
	RepetitionPenalty *float64 `json:"repetition_penalty"`
	PresencePenalty   *float64 `json:"presence_penalty"`
	FrequencyPenalty  *float64 `json:"frequency_penalty"`
}

// Over returns own, a model's Sampler, with the settings that g has in place of its own. If the Temperature of g is 0,
// the likeliest token is chosen, and the TopK, TopP and MinP of own don't count. If own is greedy, and g limits the
// draw without a Temperature, the Temperature is 1.
func (g SamplerSettings) Over(own Sampler) Sampler {
	given := func(x *float64, off float64) bool { return x != nil && *x != 0 && *x != off }
	limits := g.TopK != nil && *g.TopK != 0 || given(g.TopP, 1) || given(g.MinP, 0)
	switch {
	case g.Temperature != nil && *g.Temperature == 0:
		own.TopK, own.TopP, own.MinP = 0, 0, 0
	case g.Temperature == nil && own.Temperature == 0 && limits:
		own.Temperature = 1
	}
	replace(&own.Temperature, g.Temperature)
	replace(&own.TopK, g.TopK)
	replace(&own.TopP, g.TopP)
	replace(&own.MinP, g.MinP)
	replace(&own.RepetitionPenalty, g.RepetitionPenalty)
	replace(&own.PresencePenalty, g.PresencePenalty)
	replace(&own.FrequencyPenalty, g.FrequencyPenalty)
	return own
}

func replace[T any](value *T, given *T) {
	if given != nil {
		*value = *given
	}
}
