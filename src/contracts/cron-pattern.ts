/**
 * What a calendar line may look like, as the pattern of a JSON Schema. That a range does not end before it begins, and that
 * a day exists in one of the months, is beyond a pattern; `readCron` says it, and what is wrong with which field.
 */
const step = '(?:/(?:[1-9]\\d{0,3}|0[1-9]\\d{0,2}|00[1-9]\\d?|000[1-9]))?';

/** Of one number or name, or of a range of them; a list of those. */
function fieldOf(value: string): string {
  const part = `(?:\\*|${value}(?:-${value})?)${step}`;
  return `${part}(?:,${part})*`;
}

/** A pattern of a JSON Schema has no flag for it. */
function inAnyCase(names: string): string {
  return names.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}

const months = inAnyCase('jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec');
const weekdays = inAnyCase('sun|mon|tue|wed|thu|fri|sat');

const fields = [
  fieldOf('0{0,2}[0-5]?\\d'),
  fieldOf('0{0,2}(?:[01]?\\d|2[0-3])'),
  fieldOf('0{0,2}(?:0?[1-9]|[12]\\d|3[01])'),
  fieldOf(`(?:0{0,2}(?:0?[1-9]|1[0-2])|${months})`),
  fieldOf(`(?:0{0,3}[0-7]|${weekdays})`),
];

export const cronPattern = `^\\s*(?:@(?:hourly|daily|midnight|weekly|monthly|yearly|annually)|${fields.join('\\s+')})\\s*$`;
