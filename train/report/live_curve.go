package report

// sums are of some steps or checks, some of which were timed.
type sums struct{ n, loss, timed, seconds float64 }

// add adds o, after s has faded.
func (s *sums) add(o sums, fade float64) {
	s.n = s.n*fade + o.n
	s.loss = s.loss*fade + o.loss
	s.timed = s.timed*fade + o.timed
	s.seconds = s.seconds*fade + o.seconds
}

// mean returns the mean loss.
func (s sums) mean() float64 { return s.loss / s.n }

// rate returns how many there are a second, or 0 where that isn't known.
func (s sums) rate() float64 {
	if s.seconds <= 0 {
		return 0
	}
	return s.timed / s.seconds
}

// maxPoints is how many points a curve has at most, an even number.
const maxPoints = 1024

// A curve is of steps: points of as many steps each, which are twice as many each time there would be too many points.
type curve struct {
	each   int // steps of a point, but for the last point, which may have fewer
	points []point
}

// A point is some steps, the last of which is the xth of the run.
type point struct {
	x int
	sums
}

// add adds the xth step.
func (c *curve) add(x int, of sums) {
	c.each = max(c.each, 1)
	if last := len(c.points) - 1; last < 0 || int(c.points[last].n) == c.each {
		if len(c.points) == maxPoints {
			for i := range maxPoints / 2 {
				p := c.points[2*i+1]
				p.add(c.points[2*i].sums, 1)
				c.points[i] = p
			}
			c.points = c.points[:maxPoints/2]
			c.each *= 2
		}
		c.points = append(c.points, point{})
	}
	p := &c.points[len(c.points)-1]
	p.x = x
	p.add(of, 1)
}

// whole returns the points that have all their steps.
func (c *curve) whole() []point {
	if last := len(c.points) - 1; last > 0 && int(c.points[last].n) < c.each {
		return c.points[:last]
	}
	return c.points
}
