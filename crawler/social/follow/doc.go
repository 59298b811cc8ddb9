// Package follow decides which accounts are followed. It uses the operator's rules and the
// community's judge, who sees what this peer knows of an account. A human override takes precedence
// over both. The package gives verdicts and makes no requests.
package follow
