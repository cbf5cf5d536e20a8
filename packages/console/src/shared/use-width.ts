import { type RefObject, useLayoutEffect, useState } from 'react';

const unmeasured = 800;

/** The width of an element in pixels, also after it changes. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(unmeasured);
  useLayoutEffect(() => {
    const box = element.current;
    if (box === null) return;
    const watcher = new ResizeObserver(() => setWidth(box.clientWidth));
    watcher.observe(box);
    return () => watcher.disconnect();
  }, [element]);
  return width;
}
