// Identity policies of AWS as values. What a statement is for stands beside it, as the document itself has no room for it.

export type Statement = {
  sid: string;
  actions: readonly string[];
  resources: readonly string[];
  /** Only where a list asks for one of these prefixes; `*` stands for anything. */
  prefixes?: readonly string[];
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
    Condition?: { StringLike: { 's3:prefix': readonly string[] } };
  }[];
};

export function renderPolicy(statements: readonly Statement[]): PolicyDocument {
  return {
    Version: '2012-10-17',
    Statement: statements.map(({ sid, actions, resources, prefixes }) => ({
      Sid: sid,
      Effect: 'Allow',
      Action: actions,
      Resource: resources,
      ...(prefixes === undefined ? {} : { Condition: { StringLike: { 's3:prefix': prefixes } } }),
    })),
  };
}
