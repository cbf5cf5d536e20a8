/**
 * The calendar of a schedule as authors write it: five fields (minute, hour, day, month, weekday) or a macro. It
 * accepts the lines that Temporal accepts, with one difference. If a line gives both day and weekday, cron means either
 * and Temporal means both, so such a line becomes two. When a line starts is in starts.ts.
 */
interface Field {
  readonly name: string;
  readonly least: number;
  readonly most: number;
  /** Names of the numbers from `least` on. */
  readonly names?: readonly string[];
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

const fields: readonly Field[] = [
  { name: 'minute', least: 0, most: 59 },
  { name: 'hour', least: 0, most: 23 },
  { name: 'day', least: 1, most: 31 },
  { name: 'month', least: 1, most: 12, names: months },
  { name: 'weekday', least: 0, most: 7, names: weekdays },
];

const macros: Readonly<Record<string, string>> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
};

const longestMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function readNumber({ name, least, most, names }: Field, text: string): number {
  const named = names?.indexOf(text.toLowerCase()) ?? -1;
  const value = named >= 0 ? named + least : /^\d{1,4}$/.test(text) ? Number(text) : -1;
  if (value >= least && value <= most) return value;
  const also = names === undefined ? '' : ` or ${names[0]} to ${names.at(-1)}`;
  throw new RangeError(`${name} holds ${JSON.stringify(text)}; allowed is ${least} to ${most}${also}`);
}

const partPattern = /^(?:(\*)|([^*/-]+)(?:-([^*/-]+))?)(?:\/(\d{1,4}))?$/;

/** Reads `5`, `1-5` or `*`, each optionally with a step (`1-5/2`; `5/2` means from 5 on). */
function readPart(field: Field, part: string): number[] {
  const [, star, first = '', last, step = '1'] = partPattern.exec(part) ?? [];
  if (star === undefined && first === '') {
    throw new RangeError(`${field.name} holds ${JSON.stringify(part)}; write *, 5, 1-5 or */5`);
  }
  if (Number(step) === 0)
    throw new RangeError(`${field.name} holds ${JSON.stringify(part)}; a step is at least 1`);
  const from = star === undefined ? readNumber(field, first) : field.least;
  const isAlone = star === undefined && last === undefined && !part.includes('/');
  const to = last === undefined ? (isAlone ? from : field.most) : readNumber(field, last);
  if (to < from)
    throw new RangeError(`${field.name} holds ${JSON.stringify(part)}, which ends before it begins`);
  const values: number[] = [];
  for (let value = from; value <= to; value += Number(step)) values.push(value);
  return values;
}

function readField(field: Field, text: string): number[] {
  return text.split(',').flatMap((part) => readPart(field, part));
}

/**
 * @returns one or two lines of five fields, which together match the calendar
 * @throws RangeError that names the field, its value and the allowed values
 */
export function readCron(text: string): readonly string[] {
  const line = text.trim();
  const plain = line.startsWith('@') ? macros[line] : line;
  if (plain === undefined) {
    throw new RangeError(
      `${JSON.stringify(line)} is no calendar; allowed are ${Object.keys(macros).join(', ')}`,
    );
  }
  const texts = plain.split(/\s+/);
  if (texts.length !== fields.length) {
    const wanted = fields.map(({ name }) => name).join(', ');
    throw new RangeError(`${texts.length} fields; five are needed: ${wanted}, such as "30 4 * * mon-fri"`);
  }
  const [, , days = [], inMonths = []] = fields.map((field, at) => readField(field, texts[at] ?? ''));
  const [minute, hour, day = '*', month, weekday = '*'] = texts;
  const isEither = !day.startsWith('*') && !weekday.startsWith('*');
  if (isEither) return [`${minute} ${hour} ${day} ${month} *`, `${minute} ${hour} * ${month} ${weekday}`];
  const longest = Math.max(...inMonths.map((value) => longestMonths[value - 1] ?? 0));
  if (Math.min(...days) > longest)
    throw new RangeError(`no month ${month} has a day ${day}; it would never start`);
  return [texts.join(' ')];
}

/** A line that readCron returned, as sets. */
export interface Calendar {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  /** @param day a local date, written as midnight UTC */
  readonly matches: (day: Date) => boolean;
}

export function toCalendar(line: string): Calendar {
  const [minutes = [], hours = [], days = [], inMonths = [], onWeekdays = []] = line
    .split(' ')
    .map((text, at) => [...new Set(readField(fields[at] as Field, text))].sort((a, b) => a - b));
  return {
    minutes,
    hours,
    matches: (day) =>
      days.includes(day.getUTCDate()) &&
      inMonths.includes(day.getUTCMonth() + 1) &&
      onWeekdays.some((weekday) => weekday % 7 === day.getUTCDay()),
  };
}
