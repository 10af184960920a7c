// Macros for .cc files that pass errors on: those of abseil and tensorstore, under shorter names.
//
//   TRY(CheckOptions(options));                          // returns the Error of a Status
//   ASSIGN_OR_RETURN(Plan plan, Plan::Compile(steps));   // declares or assigns the value of a
//   Result
//
// Both return from the enclosing function, which returns a Result or a Status. A type that has a
// comma outside parentheses needs a name of its own first.
#pragma once

#include <utility>

// NOLINTBEGIN(bugprone-macro-parentheses): a variable is declared, and a name is not an expression.

#define TRY(expression)                                         \
  do {                                                          \
    if (auto stoker_status = (expression); !stoker_status.ok()) \
      return std::move(stoker_status).error();                  \
  } while (false)

#define ASSIGN_OR_RETURN(variable, expression) \
  STOKER_ASSIGN_OR_RETURN(STOKER_NAME_OF_LINE(__LINE__), variable, expression)

#define STOKER_ASSIGN_OR_RETURN(result, variable, expression) \
  auto result = (expression);                                 \
  if (!result.ok()) return std::move(result).error();         \
  variable = *std::move(result)

#define STOKER_NAME_OF_LINE(line) STOKER_NAME_WITH(line)
#define STOKER_NAME_WITH(number) stoker_result_##number

// NOLINTEND(bugprone-macro-parentheses)
