import { useState } from 'react';

/** The value as it was when `tick` last changed: what is worked out of it is worked out once a tick. */
export function useAtTick<Value>(value: Value, tick: number): Value {
  const [kept, keep] = useState({ tick, value });
  if (kept.tick === tick) return kept.value;
  keep({ tick, value });
  return value;
}
