// Decides by an identity's policy as AWS does: what no statement allows is denied. Strict: what it does not know it refuses to
// judge.

export type Asked = {
  action: string;
  resource: string;
  /** Condition keys that the request has: `s3:prefix` of a list. */
  keys?: Readonly<Record<string, string>>;
};

export type Judge = {
  /** The Sid of the first statement that allows it. */
  allowedBy(asked: Asked): string | undefined;
  allows(asked: Asked): boolean;
};

type RawStatement = {
  Sid: string;
  Effect: string;
  Action: readonly string[];
  Resource: readonly string[];
  Condition?: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
};

/** Condition keys, and the only actions whose requests have them. */
const actionsWith: Readonly<Record<string, readonly string[]>> = {
  's3:prefix': ['s3:ListBucket'],
  'sns:Protocol': ['sns:Subscribe'],
  'sns:Endpoint': ['sns:Subscribe'],
};

export function createJudge(document: unknown): Judge {
  const {
    Version,
    Statement: statements,
    ...others
  } = document as {
    Version: string;
    Statement: readonly RawStatement[];
  };
  if (Version !== '2012-10-17' || Object.keys(others).length > 0) throw new Error('no policy that AWS takes');
  for (const { Sid, Effect, Action, Resource, Condition = {}, ...more } of statements) {
    if (!/^[A-Za-z0-9]+$/.test(Sid) || Effect !== 'Allow' || Object.keys(more).length > 0) {
      throw new Error(`no statement that AWS takes: ${Sid}`);
    }
    requireKnownKeys(Action, Condition);
  }
  const allowedBy = (asked: Asked): string | undefined =>
    statements.find((statement) => fits(statement, asked))?.Sid;
  return { allowedBy, allows: (asked) => allowedBy(asked) !== undefined };
}

/** A condition on a key that a request never has would allow nothing, and nobody would see it. */
function requireKnownKeys(
  actions: readonly string[],
  condition: NonNullable<RawStatement['Condition']>,
): void {
  for (const [operator, keys] of Object.entries(condition)) {
    if (operator !== 'StringLike') throw new Error(`no condition ${operator}`);
    for (const key of Object.keys(keys)) {
      const without = actions.filter((action) => !actionsWith[key]?.includes(action));
      if (without.length > 0) throw new Error(`no key ${key} for ${without.join(', ')}`);
    }
  }
}

function fits(
  { Action, Resource, Condition: { StringLike: wanted = {} } = {} }: RawStatement,
  { action, resource, keys = {} }: Asked,
): boolean {
  return (
    Action.some((pattern) => matches(pattern, action)) &&
    Resource.some((pattern) => matches(pattern, resource)) &&
    Object.entries(wanted).every(([key, patterns]) => {
      const value = keys[key];
      return value !== undefined && patterns.some((pattern) => matches(pattern, value));
    })
  );
}

function matches(pattern: string, text: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[\\^$.+()[\]{}|?]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(text);
}
