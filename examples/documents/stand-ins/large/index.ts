/** Stands in for a large model: it also reads what people write in sentences. */
import { defineStandInModel } from '../../../stand-ins/model.ts';

const days = 'first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth'.split(' ');
const twenties = days.slice(0, 9).map((day) => `twenty-${day}`);
const months = 'January February March April May June July August September October November December'.split(
  ' ',
);

/** @returns the date of "the twenty-second of January 2026" */
function readWrittenDate(text: string): string | null {
  const [, day = '', month = '', year = ''] = /the ([a-z-]+) of ([A-Z][a-z]+) (\d{4})/.exec(text) ?? [];
  const number = twenties.includes(day) ? 21 + twenties.indexOf(day) : 1 + days.indexOf(day);
  if (number === 0 || !months.includes(month)) return null;
  const [written, counted] = [number, 1 + months.indexOf(month)].map((part) => String(part).padStart(2, '0'));
  return `${year}-${counted}-${written}`;
}

function decide(text: string): Record<string, unknown> {
  const date = /^Date: (\d{4}-\d\d-\d\d)$/m.exec(text)?.[1] ?? readWrittenDate(text);
  const [, asked] = /pay (\d+(?:\.\d\d)?) US dollars/.exec(text) ?? [];
  const [, returned] = /take (\d+(?:\.\d\d)?) USD off/.exec(text) ?? [];
  if (asked !== undefined) {
    const number = /ref\. ([A-Z]+ \d+ \/ \d+)/.exec(text)?.[1] ?? null;
    return { kind: 'invoice', number, date, total_usd: Number(asked) };
  }
  if (returned !== undefined) {
    const number = /number ([A-Z0-9-]+)/.exec(text)?.[1] ?? null;
    return { kind: 'credit_note', number, date, total_usd: Number(returned) };
  }
  return { kind: 'letter', number: null, date, total_usd: null };
}

export const capability = defineStandInModel({
  name: 'model.large',
  description: 'Stands in for a large language model that decides the hard cases.',
  price: { input: 5, output: 15 },
  answer: decide,
});
