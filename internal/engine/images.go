package engine

import (
	"context"

	"github.com/moby/moby/client"
)

// Image implements Engine.
func (d *docker) Image(ctx context.Context, reference string) (Image, error) {
	if err := d.ready(ctx); err != nil {
		return Image{}, err
	}
	ctx, cancel := d.short(ctx)
	defer cancel()
	seen, err := d.api.ImageInspect(ctx, reference)
	if err != nil {
		return Image{}, d.fail(ctx, "look at image "+reference, err)
	}
	image := Image{
		ID:           seen.ID,
		Architecture: seen.Architecture,
		Env:          map[string]string{},
	}
	if seen.Config != nil {
		image.Env = environment(seen.Config.Env)
	}
	return image, nil
}

// RemoveVolume implements Engine.
func (d *docker) RemoveVolume(ctx context.Context, name, label string) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	bounded, cancel := d.short(ctx)
	defer cancel()
	seen, err := d.api.VolumeInspect(bounded, name, client.VolumeInspectOptions{})
	if err := d.fail(bounded, "look at volume "+name, err); err != nil {
		if isGone(err) {
			return nil
		}
		return err
	}
	if _, labelled := seen.Volume.Labels[label]; !labelled {
		return &Error{Host: d.host, Step: "remove volume " + name, Err: ErrUnlabelled}
	}
	_, err = d.api.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	if err := d.fail(ctx, "remove volume "+name, err); err != nil && !isGone(err) {
		return err
	}
	return nil
}
