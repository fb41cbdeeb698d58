// The five fields of a schedule, as launch-pad's shared cron module reads them: numbers only, no names. Pure.

/** Values that match, by field. Days of the week are 0 (Sunday) to 6. */
export type Schedule = {
  minutes: readonly number[];
  hours: readonly number[];
  daysOfMonth: ReadonlySet<number>;
  months: ReadonlySet<number>;
  daysOfWeek: ReadonlySet<number>;
  /** Both kinds of day were restricted: either is enough. Only a bare `*` restricts nothing. */
  eitherDay: boolean;
  /** `*` or a step in minute or hour: runs come at intervals rather than at times of day. */
  isInterval: boolean;
};

type Field = { name: string; min: number; max: number };

const fields: readonly Field[] = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12 },
  { name: 'day of week', min: 0, max: 7 },
];

/** Throws RangeError with the reason, in the words of the field that is wrong. */
export function parseFields(text: string): Schedule {
  const texts = text.trim().split(/\s+/);
  if (text.trim() === '' || texts.length !== fields.length) {
    throw new RangeError('it needs five fields: minute, hour, day of month, month, day of week');
  }
  const values = texts.map((fieldText, at) => parseField(fieldText, fields[at] as Field));
  const [minutes = [], hours = [], daysOfMonth, months, daysOfWeek = []] = values;
  const [minuteText = '', hourText = '', dayOfMonthText, , dayOfWeekText] = texts;
  return {
    minutes,
    hours,
    daysOfMonth: new Set(daysOfMonth),
    months: new Set(months),
    daysOfWeek: new Set(daysOfWeek.map((day) => day % 7)),
    eitherDay: dayOfMonthText !== '*' && dayOfWeekText !== '*',
    isInterval: [minuteText, hourText].some((fieldText) => /[*/]/.test(fieldText)),
  };
}

/** Ascending, each value once. */
function parseField(text: string, field: Field): number[] {
  const values = text.split(',').flatMap((item) => parseItem(item, field));
  return [...new Set(values)].sort((left, right) => left - right);
}

/** `*`, N or N-M, each with `/step` if need be; `N/step` goes from N to the highest value. */
function parseItem(item: string, field: Field): number[] {
  const [range = '', stepText, ...rest] = item.split('/');
  if (rest.length > 0) throw new RangeError(`${field.name} "${item}" has two steps`);
  const step = stepText === undefined ? 1 : parseStep(stepText, item, field);
  const { from, to } = parseRange(range, stepText !== undefined, field);
  const values: number[] = [];
  for (let value = from; value <= to; value += step) values.push(value);
  return values;
}

function parseStep(text: string, item: string, { name }: Field): number {
  if (!/^\d+$/.test(text) || Number(text) === 0) {
    throw new RangeError(`${name} "${item}" has no step of at least 1`);
  }
  return Number(text);
}

function parseRange(text: string, hasStep: boolean, field: Field): { from: number; to: number } {
  if (text === '*') return { from: field.min, to: field.max };
  const bounds = text.split('-');
  if (bounds.length > 2) throw new RangeError(`${field.name} "${text}" is no range`);
  const [from = 0, to = hasStep ? field.max : from] = bounds.map((bound) => parseValue(bound, field));
  if (from > to) throw new RangeError(`${field.name} "${text}" is a range that ends before it begins`);
  return { from, to };
}

function parseValue(text: string, { name, min, max }: Field): number {
  if (!/^\d+$/.test(text)) throw new RangeError(`${name} "${text}" is no number`);
  const value = Number(text);
  if (value < min || value > max) throw new RangeError(`${name} ${text} is not in ${min} to ${max}`);
  return value;
}
