// Identity policies of AWS as values. What a statement is for stands beside it, as the document itself has no room for it.

/** The prefix that a list asks for, and what a subscription is to be. */
type ConditionKey = 's3:prefix' | 'sns:Protocol' | 'sns:Endpoint';

export type Statement = {
  sid: string;
  actions: readonly string[];
  resources: readonly string[];
  /** Only where what is asked for has one of these values; `*` stands for anything. Whatever has no such key is refused. */
  where?: Readonly<Partial<Record<ConditionKey, readonly string[]>>>;
  why: string;
  /** Who needs it: launch-pad's agent and CLI had it, or reeve does more than they did. */
  since: 'launch-pad' | 'reeve';
};

export type PolicyDocument = {
  Version: '2012-10-17';
  Statement: readonly {
    Sid: string;
    Effect: 'Allow';
    Action: readonly string[];
    Resource: readonly string[];
    Condition?: { StringLike: NonNullable<Statement['where']> };
  }[];
};

export function renderPolicy(statements: readonly Statement[]): PolicyDocument {
  return {
    Version: '2012-10-17',
    Statement: statements.map(({ sid, actions, resources, where }) => ({
      Sid: sid,
      Effect: 'Allow',
      Action: actions,
      Resource: resources,
      ...(where === undefined ? {} : { Condition: { StringLike: where } }),
    })),
  };
}
