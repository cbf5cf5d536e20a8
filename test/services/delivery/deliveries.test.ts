import { expect, test } from 'vitest';
import { createDeliveries } from '../../../src/services/delivery/deliveries.ts';
import { silentLogger } from '../registry/registry-bench.ts';

test('what waits while nothing gets through is bounded, and is told by its id alone where the line is long', async () => {
  let letThrough = (): void => undefined;
  const open = new Promise<void>((resolve) => {
    letThrough = resolve;
  });
  const told = { byId: 0, known: 0 };
  const deliveries = createDeliveries<{ id: number }>({
    what: 'a start',
    deliver: () => open.then(() => void told.byId++),
    logger: silentLogger,
  });
  for (let id = 0; id < 5_000; id++) void deliveries.soon({ id }, () => open.then(() => void told.known++));
  letThrough();
  await deliveries.settled();
  expect(told).toEqual({ known: 32 + 100, byId: 900 });
});
