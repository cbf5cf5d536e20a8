import { useStore } from '@xyflow/react';
import { type ReactElement, useEffect, useRef } from 'react';
import { type Picture, paint, readPalette } from './paint.ts';

/** Follows the viewport of its flow, at most one drawing per frame. */
export function FarCanvas({ picture }: { readonly picture: Picture }): ReactElement {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [x, y, zoom] = useStore(({ transform }) => transform);
  const width = useStore((store) => store.width);
  const height = useStore((store) => store.height);
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      const place = canvas.current;
      if (place === null) return;
      const ratio = Math.min(2, devicePixelRatio);
      const size = [Math.round(width * ratio), Math.round(height * ratio)] as const;
      if (place.width !== size[0]) place.width = size[0];
      if (place.height !== size[1]) place.height = size[1];
      paint(place, picture, { viewport: { x, y, zoom }, palette: readPalette(), ratio });
    });
    return () => cancelAnimationFrame(frame);
  }, [picture, x, y, zoom, width, height]);
  return (
    <div aria-hidden="true" className="pointer-events-none absolute inset-0">
      <canvas ref={canvas} className="size-full" />
    </div>
  );
}
