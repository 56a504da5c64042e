package task_test

import (
	"fmt"

	"github.com/heed-go/heed/train/task"
)

// A preset changes several settings. Later changes override it.
func ExampleConfig_Apply() {
	c, err := task.Named("text", 0)
	check(err)
	fmt.Println(c.Apply("speedrun"))
	c.Training.StepsPerEpoch = 1000
	fmt.Println(c.Model.Layers, "blocks,", c.Training.Optimizer.Schedule.Kind)
	fmt.Println(c.Apply("tiny"))
	// Output:
	// <nil>
	// 2 blocks, linear
	// preset must be one of nanogpt, speedrun for the task text, got "tiny"
}
