import { useState } from 'react';

/** The value at the last change of `tick`, so that values derived from it are computed once a tick. */
export function useAtTick<Value>(value: Value, tick: number): Value {
  const [kept, keep] = useState({ tick, value });
  if (kept.tick === tick) return kept.value;
  keep({ tick, value });
  return value;
}
