/** The mocks do not say what is needed to go on: a mistake of the test, not an outcome of the run. */
export class MockFault extends Error {
  override readonly name = 'MockFault';
}

/** A value in a message. */
export function showBriefly(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 300 ? `${text.slice(0, 299)}…` : text;
}
