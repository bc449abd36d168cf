"""A small contract that has nothing in common with ours."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "openapi.yaml": """openapi: 3.1.0
info:
  title: Library
  version: '1.30'
  x-versions: ['1.0', '1.30']
  x-models-since: '1.0'
jsonSchemaDialect: https://json-schema.org/draft/2020-12/schema
tags:
  - {name: books, description: Books.}
x-families: [shared, books]
""",
    "shared.yaml": """components:
  schemas:
    Failure:
      description: Reason of a failure.
      x-since: '1.0'
      type: object
      required: [reason]
      properties:
        reason: {type: string, description: Reason for people.}
  responses:
    Failed:
      description: The request failed.
      content: {application/json: {schema: {$ref: '#/components/schemas/Failure'}}}
""",
    "books.yaml": """paths:
  /books/{title}:
    put:
      operationId: put_book
      tags: [books]
      summary: Store a book.
      description: Store a book, or replace it.
      x-since: '1.0'
      parameters:
        - {name: title, in: path, required: true, description: Title., schema: {type: string}}
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: '#/components/schemas/Book'}}}
      responses:
        '200':
          description: The stored book.
          content: {application/json: {schema: {$ref: '#/components/schemas/Book'}}}
        '422': {$ref: '#/components/responses/Failed'}
        default: {$ref: '#/components/responses/Failed'}
components:
  schemas:
    Genre:
      description: Genre of a book.
      x-since: '1.0'
      type: string
      enum: [novel, poem]
      x-enum-since: {poem: '1.30'}
    Book:
      description: A book.
      x-since: '1.0'
      type: object
      additionalProperties: false
      required: [pages]
      properties:
        pages: {type: integer, minimum: 1, description: Number of pages.}
        genre:
          description: Genre.
          x-since: '1.30'
          anyOf: [{$ref: '#/components/schemas/Genre'}, {type: 'null'}]
          default: null
        shelf:
          description: Shelf.
          x-until: '1.30'
          type: string
          default: ''
""",
}


def write_own_contract(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder
