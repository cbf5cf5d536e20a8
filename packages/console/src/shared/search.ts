/** Search parameters of addresses: invalid ones are dropped, so an old link still opens. */

export type RawSearch = Readonly<Record<string, unknown>>;

export function textIn(raw: RawSearch, name: string): string | undefined {
  const value = raw[name];
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function oneIn<Value extends string>(
  raw: RawSearch,
  name: string,
  values: readonly Value[],
): Value | undefined {
  const value = textIn(raw, name);
  return values.find((one) => one === value);
}

/** YYYY-MM-DD */
export function dayIn(raw: RawSearch, name: string): string | undefined {
  const day = textIn(raw, name);
  const isDay = day !== undefined && /^20\d\d-\d\d-\d\d$/.test(day) && !Number.isNaN(Date.parse(day));
  return isDay && new Date(day).toISOString().startsWith(day) ? day : undefined;
}

export function numberIn(raw: RawSearch, name: string): number | undefined {
  const value = Number(raw[name]);
  return raw[name] !== undefined && raw[name] !== '' && Number.isFinite(value) ? value : undefined;
}

export function flagIn(raw: RawSearch, name: string): true | undefined {
  return raw[name] === true || raw[name] === 'true' || raw[name] === 1 ? true : undefined;
}
