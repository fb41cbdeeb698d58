// Decides by an identity's policy as AWS does: what no statement allows is denied. Strict: what it does not know it refuses to
// judge.

export type Asked = {
  action: string;
  resource: string;
  /** `s3:prefix` of a list. */
  prefix?: string;
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
  for (const { Sid, Effect, Action, Resource, Condition, ...more } of statements) {
    if (!/^[A-Za-z0-9]+$/.test(Sid) || Effect !== 'Allow' || Object.keys(more).length > 0) {
      throw new Error(`no statement that AWS takes: ${Sid}`);
    }
  }
  const allowedBy = (asked: Asked): string | undefined =>
    statements.find((statement) => fits(statement, asked))?.Sid;
  return { allowedBy, allows: (asked) => allowedBy(asked) !== undefined };
}

function fits(
  { Action, Resource, Condition = {} }: RawStatement,
  { action, resource, prefix }: Asked,
): boolean {
  return (
    Action.some((pattern) => matches(pattern, action)) &&
    Resource.some((pattern) => matches(pattern, resource)) &&
    Object.entries(Condition).every(([operator, keys]) => {
      if (operator !== 'StringLike') throw new Error(`no condition ${operator}`);
      return Object.entries(keys).every(([key, patterns]) => {
        if (key !== 's3:prefix') throw new Error(`no key ${key}`);
        return prefix !== undefined && patterns.some((pattern) => matches(pattern, prefix));
      });
    })
  );
}

function matches(pattern: string, text: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[\\^$.+()[\]{}|?]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(text);
}
